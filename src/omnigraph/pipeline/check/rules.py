"""All rules that an input is held to, each with a cheap question and an exact answer.

    subject -> [rules] -> questions for the judge; for those in doubt: frames of offending rows

The question is asked of every input and costs little; the frame names the rows and is built only
when there is doubt. The order of the rules is the order in which the local validator tells them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from omnigraph.pipeline.check.cardinality import cardinality_found
from omnigraph.pipeline.check.digest import Texts, Tuples
from omnigraph.pipeline.check.endpoints import ends_found, survivors_found
from omnigraph.pipeline.check.found import (
    CARDINALITY,
    ENDPOINTS,
    IDENTITY,
    SURVIVORS,
    VALUES,
    Found,
    Place,
)
from omnigraph.pipeline.check.judge import (
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
from omnigraph.pipeline.check.subject import InputTable, Subject
from omnigraph.pipeline.check.unique import (
    checked_groups,
    conflicts_found,
    held_found,
    repeated_ids_found,
    repeated_tuples_found,
)
from omnigraph.pipeline.check.values import values_found
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.write.delta import WriteMode
from omnigraph.write.rules.identity import is_keyed
from omnigraph.write.rules.image import bounded

Explain = Callable[[Subject, InputTable], Found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule on one table."""

    table_key: str
    question: Question
    """Its answer is zero if the rule is kept."""
    explain: Explain
    """What breaks it, exactly. The subject knows by then which ids repeat."""
    doubtful_if_replacing: bool = False
    """The question does not know what it means that committed rows are replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """Everything that is asked about an input."""

    rules: tuple[Rule, ...]
    repeats: dict[str, RepeatedIds]
    """By table key: how many rows of an input another one of the same id follows."""
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
        repeats={key: RepeatedIds(ids=_ids(key)) for key in given},
        known={
            key: KnownIds(ids=_ids(key)) for key in given if subject.committed.row_count(key) > 0
        },
    )


def _ids(table_key: str) -> Texts:
    return Texts(table_key=table_key, column="id")


def _ends(edge: EdgeType, column: str) -> Texts:
    return Texts(table_key=edge.table_key, column=column, distinct=True)


def _rules(subject: Subject, number: int, table: InputTable) -> Iterator[Rule]:
    key = table.type.table_key
    yield Rule(
        table_key=key,
        question=Total(name=key),
        explain=partial(values_found, place=Place(table=number, stage=VALUES)),
    )
    yield from _identity_rules(subject, number, table)
    if isinstance(table.type, EdgeType):
        yield from _endpoint_rules(subject, number, table.type)
        yield from _cardinality_rules(subject, number, table.type)
    elif isinstance(table.type, NodeType):
        yield from _survivor_rules(subject, number, table.type)


def _identity_rules(subject: Subject, number: int, table: InputTable) -> Iterator[Rule]:
    key, groups = table.type.table_key, checked_groups(table.type)
    at = [Place(table=number, stage=IDENTITY, number=i) for i in range(2 + 2 * len(groups))]
    supplied_may_repeat = subject.mode is WriteMode.MERGE and not is_keyed(table.type)
    if not table.ids_fresh and not supplied_may_repeat:
        yield Rule(
            table_key=key,
            question=RepeatedIds(ids=_ids(key)),
            explain=partial(repeated_ids_found, place=at[0]),
        )
    for place, group in zip(at[1:], groups, strict=False):
        yield Rule(
            table_key=key,
            question=RepeatedTuples(tuples=Tuples(table_key=key, group=group)),
            explain=partial(repeated_tuples_found, place=place, group=group),
        )
    if not subject.exists(key):
        return
    if subject.mode is WriteMode.APPEND and not table.ids_fresh:
        yield Rule(
            table_key=key,
            question=KnownIds(ids=_ids(key)),
            explain=partial(conflicts_found, place=at[1 + len(groups)]),
        )
    for place, group in zip(at[2 + len(groups) :], groups, strict=True):
        yield Rule(
            table_key=key,
            question=HeldTuples(tuples=Tuples(table_key=key, group=group)),
            explain=partial(held_found, place=place, group=group),
        )


def _endpoint_rules(subject: Subject, number: int, edge: EdgeType) -> Iterator[Rule]:
    for order, (column, node_name) in enumerate((("src", edge.source), ("dst", edge.target))):
        node_key = f"node:{node_name}"
        yield Rule(
            table_key=edge.table_key,
            question=MissingEnds(
                ends=_ends(edge, column),
                nodes=_ids(node_key),
                in_input=node_key in subject.tables,
                in_committed=subject.exists(node_key),
            ),
            explain=partial(
                ends_found,
                place=Place(table=number, stage=ENDPOINTS, number=order),
                column=column,
                node_name=node_name,
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
            yield Rule(
                table_key=node.table_key,
                question=LostEnds(ends=_ends(edge, column), nodes=_ids(node.table_key)),
                explain=partial(
                    survivors_found,
                    place=Place(table=number, stage=SURVIVORS),
                    edge=edge,
                    column=column,
                    order=order,
                ),
            )
            order += 1


def _cardinality_rules(subject: Subject, number: int, edge: EdgeType) -> Iterator[Rule]:
    cardinality = bounded(edge)
    if cardinality is None:
        return
    place = Place(table=number, stage=CARDINALITY)
    some = subject.committed.row_count(edge.table_key) > 0
    yield Rule(
        table_key=edge.table_key,
        question=OutOfBounds(
            sources=_ends(edge, "src"),
            low=cardinality.low,
            high=cardinality.high,
            committed=subject.exists(edge.table_key),
            deserted=subject.overwrites and some and cardinality.low > 0,
        ),
        explain=partial(cardinality_found, place=place, edge=edge),
        doubtful_if_replacing=not subject.overwrites,
    )
