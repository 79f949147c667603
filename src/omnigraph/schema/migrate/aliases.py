"""Numbers of one thing: what two branches added under one name has two, and a merge made it one.

    catalogs that know aliases -> [aliases] -> every number as the one that counts here

A merge keeps the number of ours and remembers that of theirs (``Catalog.aliases``). A
comparison of two catalogs asks here first, or takes one thing for two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from omnigraph.schema.catalog import Catalog


def numbers_in_use(catalog: Catalog) -> set[int]:
    """The numbers of all that a catalog declares."""
    found = {n for t in catalog.types() for n in (t.id, t.incarnation)}
    owners = [*catalog.interfaces.values(), *catalog.types()]
    found |= {i.id for i in catalog.interfaces.values()}
    return found | {p.id for owner in owners for p in owner.properties}


def one_numbering(
    catalogs: Sequence[Catalog], more: Iterable[tuple[int, int]] = ()
) -> dict[int, int]:
    """Numbers that are to be read as others; what is not in it stays as it is.

    Of several numbers for one thing that of the first catalog counts which declares it. ``more``
    are pairs of numbers that are one beside those that the catalogs know.
    """
    classes = _classes([*(pair for c in catalogs for pair in c.aliases.items()), *more])
    if not classes:
        return {}
    used = [numbers_in_use(catalog) for catalog in catalogs]
    found: dict[int, int] = {}
    for members in classes:
        declared = [n for numbers in used for n in sorted(members & numbers)]
        chosen = declared[0] if declared else min(members)
        found |= {n: chosen for n in members if n != chosen}
    return found


def _classes(pairs: Iterable[tuple[int, int]]) -> list[set[int]]:
    """Numbers that belong together, directly or by way of others."""
    found: list[set[int]] = []
    for pair in pairs:
        joined = set(pair)
        apart = [c for c in found if not c & joined]
        for members in found:
            if members & joined:
                joined |= members
        found = [*apart, joined]
    return found


def aliases_of(numbers: Mapping[int, int]) -> dict[int, int]:
    """A numbering as what a catalog remembers of it."""
    return dict(sorted(numbers.items()))
