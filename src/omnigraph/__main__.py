"""`python -m omnigraph`: the command line."""

from omnigraph.cli.entry import main

if __name__ == "__main__":
    main()
