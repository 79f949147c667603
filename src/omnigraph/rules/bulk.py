"""All rules that an input of any size is held to, each with a cheap test and an exact finding.

    input, counts of rows -> [bulk] -> tests for the first pass; where in doubt: exact rules

The test is made of every input and costs little; the exact rule names the rows and is carried out
only where there is doubt. Places order violations as the local validator does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from omnigraph.rules.bucket import CheapTest, ExactRule
from omnigraph.rules.cardinality import CountWrong, OutOfBounds
from omnigraph.rules.digest import Texts, Tuples
from omnigraph.rules.endpoints import EndLost, EndMissing, LostEnds, MissingEnds
from omnigraph.rules.identity import (
    IdTaken,
    KnownIds,
    RepeatedIds,
    SameId,
    ids_may_repeat,
    texts_of_ids,
)
from omnigraph.rules.image import bounded
from omnigraph.rules.ranked import (
    CARDINALITY,
    ENDPOINTS,
    IDENTITY,
    SURVIVORS,
    VALUES,
    RulePlace,
)
from omnigraph.rules.table_delta import WriteMode
from omnigraph.rules.unique import HeldTuples, RepeatedTuples, SameTuple, TupleTaken, unique_groups
from omnigraph.rules.values import BrokenValues, ValueBroken
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, NodeType


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTable:
    """The rows of one type in the input."""

    type: GraphType
    rows: int
    ids_fresh: bool = False
    """Every id was generated for this load: none repeats, none exists yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkInput:
    """An input on its way into a graph, as far as it decides what has to be checked."""

    catalog: Catalog
    mode: WriteMode
    tables: Mapping[str, InputTable]
    """By table key, in order of first mention."""
    files: tuple[str, ...]
    """Names of the sources, by number."""
    committed_rows: Callable[[str], int]
    """Rows in a committed table, 0 when it does not exist yet. Costs nothing."""

    @property
    def overwrites(self) -> bool:
        """Whether the rows of a type become its whole content."""
        return self.mode is WriteMode.OVERWRITE

    @property
    def rows(self) -> int:
        """Rows of all types."""
        return sum(table.rows for table in self.tables.values())

    def exists(self, table_key: str) -> bool:
        """Whether committed rows of this table can matter: there are some and they may stay."""
        if self.overwrites and table_key in self.tables:
            return False
        return self.committed_rows(table_key) > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRule:
    """One rule on one table."""

    table_key: str
    test: CheapTest
    """Zero if the rule is kept."""
    exact: ExactRule | ValueBroken
    doubtful_if_repeated: bool = False
    """The test does not know what it means that rows of the input supersede others."""
    doubtful_if_replacing: bool = False
    """Nor that they replace committed ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRules:
    """Everything that an input is tested for."""

    rules: tuple[BulkRule, ...]
    repeats: Mapping[str, RepeatedIds | RepeatedTuples]
    """By table key: how many rows of an input another one of the same id follows, or seems to."""
    known: Mapping[str, KnownIds]
    """By table key: how many committed ids the input names."""

    def repeats_certain(self, table_key: str) -> bool:
        """Whether the number of rows that another one of the same id follows is exact."""
        return isinstance(self.repeats[table_key], RepeatedIds)

    @property
    def tests(self) -> tuple[CheapTest, ...]:
        """All of them, each once."""
        asked = (*(r.test for r in self.rules), *self.repeats.values(), *self.known.values())
        return tuple(dict.fromkeys(asked))


def bulk_rules(given: BulkInput) -> BulkRules:
    """What has to be checked. Looks at counts of rows only."""
    supplied = {k: t for k, t in given.tables.items() if not t.ids_fresh}
    return BulkRules(
        rules=tuple(
            rule
            for number, table in enumerate(given.tables.values())
            for rule in _rules(given, number, table)
        ),
        repeats={key: _repeats(given, table.type) for key, table in supplied.items()},
        known={
            key: KnownIds(ids=texts_of_ids(key))
            for key in supplied
            if given.committed_rows(key) > 0
        },
    )


def _repeats(given: BulkInput, graph_type: GraphType) -> RepeatedIds | RepeatedTuples:
    """Whether ids repeat. Hashes are enough if nothing else needs the ids of edges, and no id may
    repeat: what they find is then checked exactly."""
    key = graph_type.table_key
    needed = isinstance(graph_type, NodeType) or given.committed_rows(key) > 0
    if needed or ids_may_repeat(given.mode, graph_type):
        return RepeatedIds(ids=texts_of_ids(key))
    return RepeatedTuples(tuples=Tuples(table_key=key, group=("id",)))


def _ends(edge: EdgeType, column: str) -> Texts:
    counted = column == "src" and bounded(edge) is not None
    return Texts(table_key=edge.table_key, column=column, distinct=True, counted=counted)


def _rules(given: BulkInput, number: int, table: InputTable) -> Iterator[BulkRule]:
    yield BulkRule(
        table_key=table.type.table_key,
        test=BrokenValues(type=table.type),
        exact=ValueBroken(
            type=table.type, place=RulePlace(table=number, stage=VALUES), files=given.files
        ),
    )
    yield from _identity_rules(given, number, table)
    if isinstance(table.type, EdgeType):
        yield from _endpoint_rules(given, number, table.type)
        yield from _cardinality_rules(given, number, table.type)
    elif isinstance(table.type, NodeType):
        yield from _survivor_rules(given, number, table.type)


def _identity_rules(given: BulkInput, number: int, table: InputTable) -> Iterator[BulkRule]:
    graph_type, files = table.type, given.files
    key, groups = graph_type.table_key, unique_groups(graph_type)
    at = [RulePlace(table=number, stage=IDENTITY, number=i) for i in range(2 + 2 * len(groups))]
    if not table.ids_fresh and not ids_may_repeat(given.mode, graph_type):
        yield BulkRule(
            table_key=key,
            test=_repeats(given, graph_type),
            exact=SameId(type=graph_type, place=at[0], files=files),
        )
    held = given.exists(key)
    for place, group in zip(at[1:], groups, strict=False):
        yield BulkRule(
            table_key=key,
            test=RepeatedTuples(tuples=Tuples(table_key=key, group=group, holders=held)),
            exact=SameTuple(type=graph_type, place=place, files=files, group=group),
        )
    if not held:
        return
    if given.mode is WriteMode.APPEND and not table.ids_fresh:
        yield BulkRule(
            table_key=key,
            test=KnownIds(ids=texts_of_ids(key)),
            exact=IdTaken(type=graph_type, place=at[1 + len(groups)], files=files),
        )
    for place, group in zip(at[2 + len(groups) :], groups, strict=True):
        yield BulkRule(
            table_key=key,
            test=HeldTuples(tuples=Tuples(table_key=key, group=group, holders=True)),
            exact=TupleTaken(type=graph_type, place=place, files=files, group=group),
        )


def _endpoint_rules(given: BulkInput, number: int, edge: EdgeType) -> Iterator[BulkRule]:
    for order, (column, node_name) in enumerate((("src", edge.source), ("dst", edge.target))):
        node_key = f"node:{node_name}"
        places = ((False, node_key in given.tables), (True, given.exists(node_key)))
        sides = tuple(side for side, there in places if there)
        yield BulkRule(
            table_key=edge.table_key,
            test=MissingEnds(
                ends=_ends(edge, column),
                nodes=texts_of_ids(node_key),
                sides=sides,
            ),
            exact=EndMissing(
                type=edge,
                place=RulePlace(table=number, stage=ENDPOINTS, number=order),
                files=given.files,
                column=column,
                node_name=node_name,
                sides=sides,
            ),
        )


def _survivor_rules(given: BulkInput, number: int, node: NodeType) -> Iterator[BulkRule]:
    if not given.overwrites or not given.committed_rows(node.table_key):
        return
    order = 0
    for edge in given.catalog.edges_at(node.name):
        # An overwritten type has no surviving edges: its new rows are checked as input.
        if not given.exists(edge.table_key):
            continue
        for column, node_name in (("src", edge.source), ("dst", edge.target)):
            if node_name != node.name:
                continue
            place = RulePlace(table=number, stage=SURVIVORS, rank=order)
            yield BulkRule(
                table_key=node.table_key,
                test=LostEnds(ends=_ends(edge, column), nodes=texts_of_ids(node.table_key)),
                exact=EndLost(edge=edge, column=column, place=place),
            )
            order += 1


def _cardinality_rules(given: BulkInput, number: int, edge: EdgeType) -> Iterator[BulkRule]:
    cardinality = bounded(edge)
    if cardinality is None:
        return
    node_key = f"node:{edge.source}"
    committed = given.exists(edge.table_key)
    some = given.committed_rows(edge.table_key) > 0
    # The minimum is the only bound that a source without any edge left can break.
    emptied = given.overwrites and some and cardinality.low > 0
    nodes_go = node_key in given.tables and given.overwrites
    yield BulkRule(
        table_key=edge.table_key,
        test=OutOfBounds(
            sources=_ends(edge, "src"),
            edge=edge,
            committed=committed,
            emptied=emptied,
        ),
        exact=CountWrong(
            type=edge,
            place=RulePlace(table=number, stage=CARDINALITY),
            files=given.files,
            edge=edge,
            committed=committed,
            emptied=emptied,
            nodes_go=nodes_go and given.committed_rows(node_key) > 0,
        ),
        # Fewer edges than the test counts can only break the minimum.
        doubtful_if_repeated=cardinality.low > 0,
        doubtful_if_replacing=committed and cardinality.low > 0 and not edge.keyed,
    )
