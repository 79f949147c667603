"""The release. The package is built with it, and `--version` need not search for the package."""

__version__ = "0.1.0"
