"""Our Arrow types as Spark has them, and back, exactly.

    table_schema(type) -> [arrow] -> Spark schema; batches of executors <-> batches of Spark

Spark knows no unsigned numbers, no fixed lists and no milliseconds. Each of our types has one Spark
type that holds all of its values; a batch is *carried* to Spark in the Arrow types that Spark uses
for these, and a batch that comes from there is cast back without a loss.

    String, enum  string         I32  int       U32  bigint           F32  float     Bool  boolean
    Date          date           I64  bigint    U64  decimal(20,0)    F64  double    Blob  binary
    DateTime      timestamp      list array<…>  vector  array<float>  object  struct<…>
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pt

from omnigraph.errors import InternalError, UsageError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

U64 = pa.decimal128(20, 0)
"""What holds every U64 and no more digits than needed."""
INSTANT = pa.timestamp("us", tz="UTC")

_CARRIED: dict[pa.DataType, pa.DataType] = {
    kind: kind
    for kind in (
        pa.string(),
        pa.bool_(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.date32(),
        pa.binary(),
        U64,
        INSTANT,
    )
} | {
    pa.uint32(): pa.int64(),
    pa.uint64(): U64,
    pa.timestamp("ms", tz="UTC"): INSTANT,
    pa.large_binary(): pa.binary(),
    pa.large_string(): pa.string(),
}
_SPARK_WORDS: dict[pa.DataType, str] = {
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.binary(): "binary",
    U64: "decimal(20,0)",
    INSTANT: "timestamp",
}


# -- types ---------------------------------------------------------------------------------------


def carried_type(kind: pa.DataType) -> pa.DataType:
    """The Arrow type in which Spark takes and gives values of one of our types."""
    if pt.is_list(kind) or pt.is_fixed_size_list(kind) or pt.is_large_list(kind):
        # A list of ours never holds nulls, and Spark calls the members by this name.
        return pa.list_(pa.field("element", carried_type(kind.value_type), nullable=False))
    if pt.is_struct(kind):
        return pa.struct([carried_field(field) for field in kind])
    carried = _CARRIED.get(kind)
    if carried is None:
        raise InternalError(f"no Spark type holds {kind}")
    return carried


def carried_field(field: pa.Field) -> pa.Field:
    """A column as it is carried: its name and whether it may be null stay."""
    return pa.field(field.name, carried_type(field.type), nullable=field.nullable)


def carried_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of batches that are given to Spark, for a schema of ours."""
    return pa.schema([carried_field(field) for field in schema])


def spark_schema(schema: pa.Schema) -> StructType:
    """A schema of ours as a Spark schema."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(f.name, spark_type(f.type), f.nullable) for f in schema])


def spark_type(kind: pa.DataType) -> DataType:
    """The Spark type of one of our types."""
    from pyspark.sql import types

    carried = carried_type(kind)
    if pt.is_list(carried):
        return types.ArrayType(spark_type(carried.value_type), containsNull=False)
    if pt.is_struct(carried):
        return spark_schema(pa.schema(list(carried)))
    if carried == U64:
        return types.DecimalType(20, 0)
    simple: dict[pa.DataType, DataType] = {
        pa.string(): types.StringType(),
        pa.bool_(): types.BooleanType(),
        pa.int32(): types.IntegerType(),
        pa.int64(): types.LongType(),
        pa.float32(): types.FloatType(),
        pa.float64(): types.DoubleType(),
        pa.date32(): types.DateType(),
        pa.binary(): types.BinaryType(),
        INSTANT: types.TimestampType(),
    }
    return simple[carried]


def arrow_of(schema: StructType) -> pa.Schema:
    """The schema of batches that Spark gives or takes for any Spark schema.

    Raises ``UsageError`` for types that nothing of ours could be read from, such as maps.
    """
    return pa.schema(
        [pa.field(f.name, _arrow_type(f.dataType, f.name), nullable=f.nullable) for f in schema]
    )


def _arrow_type(kind: DataType, name: str) -> pa.DataType:
    from pyspark.sql import types

    if isinstance(kind, types.ArrayType):
        inner = _arrow_type(kind.elementType, name)
        return pa.list_(pa.field("element", inner, nullable=kind.containsNull))
    if isinstance(kind, types.StructType):
        return pa.struct(list(arrow_of(kind)))
    if isinstance(kind, types.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, types.StringType):
        return pa.string()
    words = {word: arrow for arrow, word in _SPARK_WORDS.items()} | {
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "timestamp_ntz": pa.timestamp("us"),
        "void": pa.null(),
    }
    found = words.get(kind.simpleString())
    if found is None:
        raise UsageError(f"column '{name}' is {kind.simpleString()}, which no property can hold")
    return found


# -- batches -------------------------------------------------------------------------------------


def to_spark(batch: pa.RecordBatch, carried: pa.Schema) -> pa.RecordBatch:
    """A batch of ours as Spark takes it; ``carried`` is ``carried_schema`` of its columns."""
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, carried, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=carried)


def from_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch from Spark in our own types: its columns by name, in the order of ``schema``.

    Its columns have the Spark types of this module, as every DataFrame of ours has; Spark may say
    them in large variants or with another time zone. Raises ``ArrowInvalid`` for a value that the
    type cannot hold, such as a negative number for a U64, and ``InternalError`` for other types.
    """
    columns: list[pa.Array] = []
    for field in schema:
        column = batch.column(field.name)
        if not _is_carried(column.type, field.type):
            raise InternalError(
                f"column '{field.name}' came from Spark as {column.type}, not as "
                f"{spark_type(field.type).simpleString()}"
            )
        columns.append(column if column.type == field.type else _back(column, field.type))
        if not field.nullable and column.null_count:
            raise pa.ArrowInvalid(f"column '{field.name}' has nulls")
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _is_carried(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark gave what holds values of the wanted type."""
    if pt.is_list(wanted) or pt.is_fixed_size_list(wanted):
        lists = pt.is_list(given) or pt.is_large_list(given) or pt.is_fixed_size_list(given)
        return lists and _is_carried(given.value_type, wanted.value_type)
    if pt.is_struct(wanted):
        return (
            pt.is_struct(given)
            and [f.name for f in given] == [f.name for f in wanted]
            and all(_is_carried(g.type, w.type) for g, w in zip(given, wanted, strict=True))
        )
    if pt.is_timestamp(wanted):
        return pt.is_timestamp(given) and given.tz is not None
    if pt.is_large_string(given) or pt.is_large_binary(given):
        given = pa.string() if pt.is_large_string(given) else pa.binary()
    return given in (carried_type(wanted), wanted)


def _back(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pt.is_fixed_size_list(wanted) and column.null_count == len(column):
        # Arrow looks at the length of lists that are not there when there is nothing else.
        return pa.nulls(len(column), wanted)
    return column.cast(wanted, safe=True)
