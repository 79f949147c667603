"""Every code of a finding about hints: they can only be judged against an accepted schema.

Codes are stable: append, never renumber or reuse. Each has a case under ``tests/golden/migrate``.
"""

from __future__ import annotations

from enum import StrEnum


class HintCode(StrEnum):
    """Stable code of a finding."""

    RENAME_UNKNOWN = "M101"
    RENAME_OTHER_KIND = "M102"
    RENAME_TAKEN = "M103"
    RENAME_IN_NEW_TYPE = "M104"
    RENAME_USELESS = "M105"
    BACKFILL_UNKNOWN = "M201"
    BACKFILL_TYPE = "M202"
    BACKFILL_USELESS = "M203"


HINT_EXPLANATIONS: dict[HintCode, str] = {
    HintCode.RENAME_UNKNOWN: "`@rename_from` names nothing that the graph has",
    HintCode.RENAME_OTHER_KIND: "`@rename_from` on a node names an edge type, or the other way",
    HintCode.RENAME_TAKEN: "`@rename_from` names what another declaration goes on with",
    HintCode.RENAME_IN_NEW_TYPE: "a property of a new type cannot come from another type",
    HintCode.RENAME_USELESS: "`@rename_from` has served: the graph has this name (a warning)",
    HintCode.BACKFILL_UNKNOWN: "`@backfill` names a property that the graph's type does not have",
    HintCode.BACKFILL_TYPE: "`@backfill` copies a property of a type that does not fit",
    HintCode.BACKFILL_USELESS: "`@backfill` has served: no row lacks a value (a warning)",
}
