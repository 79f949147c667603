"""What the installed pyarrow can say about texts to another engine.

Conditions travel to Lance as Substrait. Which functions have a name there depends on the release of
pyarrow: before 26 those that look into a text have none.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pyarrow.compute as pc


@cache
def text_tests_travel() -> bool:
    """Whether a condition that looks for a part of a text can be told to Lance."""
    schema = pa.schema([("text", pa.string())])
    try:
        pc.match_substring(pc.field("text"), "a").to_substrait(schema)  # pyright: ignore[reportAttributeAccessIssue]
    except pa.ArrowNotImplementedError:
        return False
    return True
