"""A Spark DataFrame as rows of one type.

    DataFrame -> (driver) shape and numbered rows -> (tasks) columns.piece_of -> [frames] -> pieces

The line of a row is its number in the order in which `collect()` would return the rows. A
partition of the frame is a unit: rows are numbered within it by Spark, and the ledger adds what
stands before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.input.packed import pack_unit
from omnigraph.input.pieces import InputPiece
from omnigraph.input.plan import PlannedMember
from omnigraph.input.problems import Problem, input_error
from omnigraph.input.table_shape import check_types, piece_of, table_shape
from omnigraph.input.units import TableShape, group_unit
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.ir import catalog_of
from omnigraph.spark.errors import task
from omnigraph.storage.faults import short

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Batches = Iterator[pa.RecordBatch]
_PLACE = "place"
_PARTITION_BITS = 33
"""How Spark's increasing ids are made: the partition's number above, the row's below."""


@dataclass(frozen=True, kw_only=True)
class PlannedFrame:
    """One DataFrame, ready to be read."""

    frame: DataFrame
    """The wanted columns under the names that the shape gives them, and the place of each row."""
    shape: TableShape
    group: int
    file: int
    """Index among all sources."""


def plan_frames(members: Sequence[PlannedMember]) -> list[PlannedFrame]:
    """Settle columns and their types. Raises InputError."""
    return [_planned(member, group) for group, member in enumerate(members, start=1)]


def _planned(planned: PlannedMember, group: int) -> PlannedFrame:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions

    frame: DataFrame = planned.member.value
    graph_type, name = planned.type, planned.member.label
    shape = table_shape(graph_type, frame.columns, mapping=planned.member.columns, source=name)
    # By place: Spark looks for names without regard to case, and may find two.
    numbered = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    places = {column: f"c{frame.columns.index(column)}" for _, column in shape.columns}
    wanted = [functions.col(place) for place in places.values()]
    try:
        schema: pa.Schema = numbered.select(*wanted).limit(0).toArrow().schema
    except (PySparkException, pa.ArrowException) as error:
        raise input_error(
            [Problem(source=name, message=f"the DataFrame cannot be read: {short(error)}")]
        ) from error
    types = {column: schema.field(place).type for column, place in places.items()}
    check_types(graph_type, shape, types, name)
    place = functions.monotonically_increasing_id().alias(_PLACE)
    return PlannedFrame(
        frame=numbered.select(*wanted, place), shape=shape, group=group, file=planned.index
    )


def frame_task(ir: bytes, shape: TableShape, group: int, file: int) -> Callable[[Batches], Batches]:
    """For executors: rows of a user's DataFrame -> rows of the parsed frame."""

    @task
    def run(batches: Batches) -> Batches:
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        graph_type = catalog_of(ir).table(shape.table_key)
        pieces = _read_batches(chain([first], filled), graph_type, shape)
        yield from pack_unit(group_unit(group, _unit_of(first)), file, pieces)

    return run


def _unit_of(batch: pa.RecordBatch) -> int:
    """The partition of the frame that a batch comes from."""
    first: Any = batch.column(batch.num_columns - 1)[0].as_py()
    return int(first) >> _PARTITION_BITS


def _read_batches(
    batches: Batches, graph_type: GraphType, shape: TableShape
) -> Iterator[InputPiece]:
    """The pieces of one partition."""
    # The distinct columns of the source in the order in which the frame has them.
    names = list(dict.fromkeys(column for _, column in shape.columns))
    for batch in batches:
        columns = dict(zip(names, batch.columns, strict=False))  # the last one is the place
        yield piece_of(graph_type, shape, columns, batch.num_rows)
