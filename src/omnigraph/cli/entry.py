"""Where the installed command starts: so small that Ctrl-C cannot hit it half imported.

    shell -> [entry] -> main -> App

Importing the command line takes a while; an interrupt meanwhile is answered here, later ones by the
boundary.
"""

import sys

_INTERRUPTED = 130


def main() -> None:
    """Import the command line and run it."""
    imported = False
    try:
        from omnigraph.cli.startup import collect_less, defer_pandas

        collect_less()
        defer_pandas()
        from omnigraph.cli.main import main as run

        imported = True
        run()
    except KeyboardInterrupt:
        if not imported:
            _report_interrupt()
        sys.exit(_INTERRUPTED)


def _report_interrupt() -> None:
    try:
        if "--json" in sys.argv:
            sys.stdout.write('{\n  "error": "interrupted",\n  "code": "interrupted"\n}\n')
            sys.stdout.flush()
        sys.stderr.write("interrupted\n")
    except (OSError, AttributeError):  # A stream is full, or closed and therefore None.
        pass


if __name__ == "__main__":
    main()
