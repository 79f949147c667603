"""What the whole command line shares while one command runs."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.cli.output import JsonOutput, Output


@dataclass(slots=True)
class Settings:
    """Filled by the options as they are read."""

    json: bool = False
    quiet: bool = False

    @property
    def output(self) -> Output:
        """Where this command's results and errors go."""
        if self.json:
            return JsonOutput()
        # rich takes longer to import than the rest of the command line: not for programs.
        from omnigraph.cli.rich_output import RichOutput

        return RichOutput(quiet=self.quiet)
