"""Loggers under `omnigraph`, quiet until a program asks for them.

    logging.getLogger("omnigraph").setLevel(logging.INFO)

| Logger               | Level   | Tells                                               |
|----------------------|---------|-----------------------------------------------------|
| `omnigraph.api`      | DEBUG   | a graph was opened                                  |
| `omnigraph.write`    | INFO    | a commit was published; a race was lost             |
| `omnigraph.manifest` | WARNING | housekeeping failed: harmless, and done again later |

Values of entities and parameters are never logged.
"""

from __future__ import annotations

import logging

_ROOT = "omnigraph"


def logger(name: str) -> logging.Logger:
    """The logger of a layer. Nothing is printed by itself, warnings neither."""
    root = logging.getLogger(_ROOT)
    if not root.handlers:
        root.addHandler(logging.NullHandler())
    return root.getChild(name)
