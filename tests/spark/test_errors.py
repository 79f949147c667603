"""What goes wrong in a task arrives as an error of ours, on a classic session and through Connect."""

from __future__ import annotations

import pytest

from omnigraph import (
    ConstraintError,
    ErrorKind,
    InputError,
    InternalError,
    LimitError,
    OmnigraphError,
    StorageError,
    UsageError,
    Violation,
)
from omnigraph.spark.errors import task, translate_text, translated
from omnigraph.spark.package import ship

VIOLATION = Violation(
    rule="unique", message="twice: é", entity_kind="node", type_name="A", source="a.jsonl", line=7
)
RAISED = [
    StorageError(
        "the bucket\nis gone",
        kind=ErrorKind.STORAGE_DENIED,
        hint="ask for access",
        details={"path": "s3://b/x"},
    ),
    ConstraintError([VIOLATION], total=12),
]


def failing(raises):
    """A task that raises: a function in a function, so that it is sent by its code."""

    def run(batches):
        yield from ()
        raise raises

    return run


def run(spark, function):
    ship(spark)
    with translated("testing"):
        return spark.range(0, 2, 1, 1).mapInArrow(function, "id bigint").collect()


def assert_comes_home(spark, raised: OmnigraphError) -> None:
    with pytest.raises(type(raised)) as caught:
        run(spark, task(failing(raised)))
    assert caught.value.to_dict() == raised.to_dict()
    assert str(caught.value) == str(raised)


@pytest.mark.parametrize("raised", RAISED, ids=lambda e: type(e).__name__)
def test_an_error_of_ours_comes_home_as_itself(spark, raised):
    assert_comes_home(spark, raised)


@pytest.mark.parametrize("raised", RAISED, ids=lambda e: type(e).__name__)
def test_an_error_of_ours_comes_home_as_itself_through_connect(spark_connect, raised):
    assert_comes_home(spark_connect, raised)


def test_an_error_of_a_group_comes_home_too(spark):
    ship(spark)

    def keyed(key, table):
        raise raised

    def single(table):
        raise raised

    raised = StorageError("gone")
    for function in (keyed, single):
        with pytest.raises(StorageError, match=r"^gone$"), translated("testing"):
            groups = spark.range(2).groupBy("id")
            groups.applyInArrow(task(function), "id bigint").collect()


def test_an_error_of_ours_without_its_note_keeps_class_message_and_hint(spark):
    with pytest.raises(StorageError, match="gone") as caught:
        run(spark, failing(StorageError("gone", hint="wait")))
    assert caught.value.hint == "wait"


def other_failures(spark) -> None:
    with pytest.raises(LimitError, match="out of memory"):
        run(spark, failing(MemoryError()))
    with pytest.raises(UsageError, match="lacks the Python package nowhere"):
        run(spark, failing(ModuleNotFoundError("No module named 'nowhere'")))
    # The function is the caller's own, so is the mistake.
    with pytest.raises(InputError, match="ValueError: a b"):
        run(spark, failing(ValueError("a\nb")))


def test_other_failures_are_typed(spark):
    other_failures(spark)


def test_other_failures_are_typed_through_connect(spark_connect):
    other_failures(spark_connect)


def test_a_worker_that_dies_is_a_storage_error(spark):
    def dies(batches):
        import os

        os._exit(9)
        yield

    with pytest.raises(StorageError, match="a Python process of Spark died"):
        run(spark, dies)
    assert run(spark, lambda batches: batches)


def test_a_data_frame_that_cannot_be_evaluated_is_an_input_error(spark):
    with pytest.raises(InputError, match="`nope`"), translated("reading"):
        spark.range(2).select("nope").collect()
    with pytest.raises(InputError, match="CAST_INVALID_INPUT"), translated("reading"):
        spark.sql("select cast('x' as int)").collect()


def test_what_is_not_sparks_passes():
    with pytest.raises(ValueError, match="mine"), translated():
        raise ValueError("mine")
    with pytest.raises(InternalError, match="mine"), translated():
        raise InternalError("mine")


# Words of Spark that take a broken cluster to provoke.
WORDS = [
    ("java.lang.OutOfMemoryError: Java heap space", LimitError, ErrorKind.LIMIT),
    ("java.io.IOException: No space left on device", StorageError, ErrorKind.STORAGE_FULL),
    ("[PYTHON_VERSION_MISMATCH] Python in worker", UsageError, ErrorKind.USAGE),
    ('Cannot run program "/x/python": error=2', UsageError, ErrorKind.USAGE),
    (
        "ExecutorLostFailure (executor 1 exited caused by …) Reason: worker lost",
        StorageError,
        ErrorKind.STORAGE_TRANSIENT,
    ),
    ("Container killed … exit code 137", LimitError, ErrorKind.LIMIT),
    ("Cannot call methods on a stopped SparkContext.", StorageError, ErrorKind.STORAGE_TRANSIENT),
    ("[SPARK_JOB_CANCELLED] Job 3 cancelled", StorageError, ErrorKind.STORAGE_TRANSIENT),
    ("something new", InternalError, ErrorKind.INTERNAL),
]


@pytest.mark.parametrize(("text", "raises", "kind"), WORDS, ids=lambda v: str(v)[:20])
def test_words_of_spark(text, raises, kind):
    error = translate_text(f"An error occurred while calling o1.x.\n: {text}", set(), "testing")
    assert type(error) is raises
    assert error.kind is kind
    assert "while testing" in error.message
    assert "calling o1" not in error.message
