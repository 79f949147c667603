"""What the whole command line shares while one command runs."""

from __future__ import annotations

from omnigraph.cli.output import JsonOutput, Output


class Settings:
    """Filled by the options as they are read, and by the command as it goes on."""

    def __init__(self, *, json: bool = False, quiet: bool = False) -> None:
        self.json = json
        self.json_said = False
        """Whether the option was given, before or after the command's name."""
        self.quiet = quiet
        self.writing = False
        """Whether the graph is being changed: an interrupt may come before or after the commit."""
        self.published: str | None = None
        """The commit that was published: true whatever fails afterwards."""

    @property
    def output(self) -> Output:
        """Where this command's results and errors go."""
        if self.json:
            return JsonOutput()
        # rich takes longer to import than the rest of the command line: not for programs.
        from omnigraph.cli.rich_output import RichOutput

        return RichOutput(quiet=self.quiet)
