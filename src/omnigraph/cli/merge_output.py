"""Printing a merge: text for people, one JSON document for programs.

MergeResult | MergeConflictError -> [merge_output] -> stdout | stderr
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from omnigraph.branch.merge.result import MergeResult
from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import write_bytes, write_error, write_text
from omnigraph.errors import MergeConflictError

if TYPE_CHECKING:
    from rich.text import Text

    from omnigraph.cli.merge_text import Line


def print_result(result: MergeResult, settings: Settings, *, verb: str = "merge") -> None:
    """What a merge or a revert did, on stdout."""
    if settings.json:
        text = json.dumps(result.to_dict(), ensure_ascii=False, indent=2) + "\n"
        write_bytes(text.encode("utf-8", "backslashreplace"))
        return
    if settings.quiet and not result.conflicts:
        return
    # rich takes long to import; programs do not need it.
    from omnigraph.cli.merge_text import result_lines
    from omnigraph.cli.rich_output import rendered

    write_text(rendered(_text(result_lines(result, verb=verb)), sys.stdout))


def print_conflicts(error: MergeConflictError, settings: Settings) -> None:
    """What stands in the way, on stderr; the error itself follows."""
    if settings.json or not error.conflicts:
        return
    from omnigraph.cli.merge_text import conflict_lines
    from omnigraph.cli.rich_output import rendered

    ours, theirs = (str(error.details.get(side)) for side in ("ours", "theirs"))
    lines = _text(conflict_lines(error.conflicts, ours, theirs))
    write_error(rendered(lines, sys.stderr) + "\n")


def _text(lines: Iterable[Line]) -> Text:
    from rich.text import Text

    return Text("\n").join(Text.assemble(*line) for line in lines)
