"""All rules that an input is held to, each with a cheap question and an exact answer.

    subject -> [rules] -> questions for the judge; for those in doubt: exact rules

The question is asked of every input and costs little; the exact rule names the rows and is carried
out only where there is doubt. Places order violations as the local validator does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.rules.identity import identity_members
from omnigraph.rules.image import bounded
from omnigraph.rules.table_delta import WriteMode
from omnigraph.schema.catalog import EdgeType, GraphType, NodeType
from omnigraph.schema.identity import is_keyed
from omnigraph.spark.check.digest import Texts, Tuples
from omnigraph.spark.check.exact import (
    CountWrong,
    EndLost,
    EndMissing,
    Exact,
    IdTaken,
    SameId,
    SameTuple,
    TupleTaken,
)
from omnigraph.spark.check.found import (
    CARDINALITY,
    ENDPOINTS,
    IDENTITY,
    SURVIVORS,
    VALUES,
    Place,
)
from omnigraph.spark.check.judge import (
    HeldTuples,
    KnownIds,
    LostEnds,
    MissingEnds,
    OutOfBounds,
    Question,
    RepeatedIds,
    RepeatedTuples,
    Total,
)
from omnigraph.spark.check.subject import InputTable, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesRule:
    """Rule 1: it needs no rows to meet."""

    type: GraphType
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule on one table."""

    table_key: str
    question: Question
    """Its answer is zero if the rule is kept."""
    exact: Exact | ValuesRule
    doubtful_if_replacing: bool = False
    """The question does not know what it means that committed rows are replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """Everything that is asked about an input."""

    rules: tuple[Rule, ...]
    repeats: dict[str, RepeatedIds | RepeatedTuples]
    """By table key: how many rows of an input another one of the same id follows, or seems to."""
    known: dict[str, KnownIds]
    """By table key: how many committed ids the input names."""

    @property
    def questions(self) -> tuple[Question, ...]:
        """All of them, each once."""
        asked = (*(r.question for r in self.rules), *self.repeats.values(), *self.known.values())
        return tuple(dict.fromkeys(asked))


def inquiry(subject: Subject) -> Inquiry:
    """What has to be asked. Looks at counts of rows only."""
    given = {k: t for k, t in subject.tables.items() if not t.ids_fresh}
    return Inquiry(
        rules=tuple(
            rule
            for number, table in enumerate(subject.tables.values())
            for rule in _rules(subject, number, table)
        ),
        repeats={key: _repeats(subject, table.type) for key, table in given.items()},
        known={
            key: KnownIds(ids=_ids(key)) for key in given if subject.committed.row_count(key) > 0
        },
    )


def _ids(table_key: str) -> Texts:
    return Texts(table_key=table_key, column="id")


def ids_repeated(table_key: str) -> RepeatedIds:
    """The exact number of rows that another one of the same id follows."""
    return RepeatedIds(ids=_ids(table_key))


def _repeats(subject: Subject, graph_type: GraphType) -> RepeatedIds | RepeatedTuples:
    """Whether ids repeat. Where nothing else needs the ids of edges, their hashes are enough."""
    key = graph_type.table_key
    if isinstance(graph_type, NodeType) or subject.committed.row_count(key):
        return ids_repeated(key)
    return RepeatedTuples(tuples=Tuples(table_key=key, group=("id",)))


def _ends(edge: EdgeType, column: str) -> Texts:
    counted = column == "src" and bounded(edge) is not None
    return Texts(table_key=edge.table_key, column=column, distinct=True, counted=counted)


def _groups(graph_type: GraphType) -> list[tuple[str, ...]]:
    """The groups to check beside identity; one equal to the key says nothing new."""
    key = set(identity_members(graph_type))
    return [group for group in graph_type.unique if set(group) != key]


def _rules(subject: Subject, number: int, table: InputTable) -> Iterator[Rule]:
    key = table.type.table_key
    values = ValuesRule(type=table.type, place=Place(table=number, stage=VALUES))
    yield Rule(table_key=key, question=Total(name=key), exact=values)
    yield from _identity_rules(subject, number, table)
    if isinstance(table.type, EdgeType):
        yield from _endpoint_rules(subject, number, table.type)
        yield from _cardinality_rules(subject, number, table.type)
    elif isinstance(table.type, NodeType):
        yield from _survivor_rules(subject, number, table.type)


def _identity_rules(subject: Subject, number: int, table: InputTable) -> Iterator[Rule]:
    graph_type, files = table.type, subject.files
    key, groups = graph_type.table_key, _groups(graph_type)
    at = [Place(table=number, stage=IDENTITY, number=i) for i in range(2 + 2 * len(groups))]
    supplied_may_repeat = subject.mode is WriteMode.MERGE and not is_keyed(graph_type)
    if not table.ids_fresh and not supplied_may_repeat:
        yield Rule(
            table_key=key,
            question=_repeats(subject, graph_type),
            exact=SameId(type=graph_type, place=at[0], files=files),
        )
    held = subject.exists(key)
    for place, group in zip(at[1:], groups, strict=False):
        yield Rule(
            table_key=key,
            question=RepeatedTuples(tuples=Tuples(table_key=key, group=group, holders=held)),
            exact=SameTuple(type=graph_type, place=place, files=files, group=group),
        )
    if not held:
        return
    if subject.mode is WriteMode.APPEND and not table.ids_fresh:
        yield Rule(
            table_key=key,
            question=KnownIds(ids=_ids(key)),
            exact=IdTaken(type=graph_type, place=at[1 + len(groups)], files=files),
        )
    for place, group in zip(at[2 + len(groups) :], groups, strict=True):
        yield Rule(
            table_key=key,
            question=HeldTuples(tuples=Tuples(table_key=key, group=group, holders=True)),
            exact=TupleTaken(type=graph_type, place=place, files=files, group=group),
        )


def _endpoint_rules(subject: Subject, number: int, edge: EdgeType) -> Iterator[Rule]:
    for order, (column, node_name) in enumerate((("src", edge.source), ("dst", edge.target))):
        node_key = f"node:{node_name}"
        in_input, in_committed = node_key in subject.tables, subject.exists(node_key)
        yield Rule(
            table_key=edge.table_key,
            question=MissingEnds(
                ends=_ends(edge, column),
                nodes=_ids(node_key),
                in_input=in_input,
                in_committed=in_committed,
            ),
            exact=EndMissing(
                type=edge,
                place=Place(table=number, stage=ENDPOINTS, number=order),
                files=subject.files,
                column=column,
                node_name=node_name,
                in_input=in_input,
                in_committed=in_committed,
            ),
        )


def _survivor_rules(subject: Subject, number: int, node: NodeType) -> Iterator[Rule]:
    if not subject.overwrites or not subject.committed.row_count(node.table_key):
        return
    order = 0
    for edge in subject.catalog.edges_at(node.name):
        # An overwritten type has no surviving edges: its new rows are checked as input.
        if not subject.exists(edge.table_key):
            continue
        for column, node_name in (("src", edge.source), ("dst", edge.target)):
            if node_name != node.name:
                continue
            place = Place(table=number, stage=SURVIVORS, rank=order)
            yield Rule(
                table_key=node.table_key,
                question=LostEnds(ends=_ends(edge, column), nodes=_ids(node.table_key)),
                exact=EndLost(edge=edge, column=column, place=place),
            )
            order += 1


def _cardinality_rules(subject: Subject, number: int, edge: EdgeType) -> Iterator[Rule]:
    cardinality = bounded(edge)
    if cardinality is None:
        return
    node_key = f"node:{edge.source}"
    committed = subject.exists(edge.table_key)
    some = subject.committed.row_count(edge.table_key) > 0
    # The minimum is the only bound that a source without any edge left can break.
    deserted = subject.overwrites and some and cardinality.low > 0
    nodes_go = node_key in subject.tables and subject.overwrites
    yield Rule(
        table_key=edge.table_key,
        question=OutOfBounds(
            sources=_ends(edge, "src"),
            low=cardinality.low,
            high=cardinality.high,
            committed=committed,
            deserted=deserted,
        ),
        exact=CountWrong(
            type=edge,
            place=Place(table=number, stage=CARDINALITY),
            files=subject.files,
            edge=edge,
            committed=committed,
            deserted=deserted,
            nodes_go=nodes_go and subject.committed.row_count(node_key) > 0,
        ),
        doubtful_if_replacing=not subject.overwrites,
    )
