"""Words that parameters of the API take, as types: an editor completes them, a checker finds typos.

At run time every one of them is still checked where it is used; a wrong one is a ``UsageError``.
"""

from __future__ import annotations

from typing import Literal

LoadModeWord = Literal["append", "merge", "overwrite"]
"""What a load does with entities that exist."""
EngineWord = Literal["local", "spark"]
"""What carries out a query or an export."""
AutoEngineWord = Literal["auto", "local", "spark"]
"""What carries out a load or a cleanup; ``auto`` decides by the size."""
ExportFormatWord = Literal["jsonl", "csv", "parquet"]
"""What the files of an export hold."""
DurabilityWord = Literal["process", "fsync"]
"""What an acknowledged commit survives."""
GranularityWord = Literal["property", "row"]
"""What two sides of a merge may change without a conflict."""
PreferWord = Literal["ours", "theirs"]
"""Which side a merge takes where both changed the same thing."""
