"""What Spark reports becomes our own errors here and nowhere else.

    executor:  @task  ─ an error of ours takes its fields along, as a note on the traceback
    driver:    with translated():  ─ the text that Spark reports becomes a typed error

An exception in a task reaches the driver as text: the worker's traceback, wrapped by a JVM. A note
(PEP 678) is part of that text on every route, classic and Connect, so one of our errors arrives
as itself. The note is JSON and never a pickle: a row of data could end up in a message.
"""

from __future__ import annotations

import gc
import inspect
import json
import re
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from omnigraph import errors
from omnigraph.errors import (
    ConstraintError,
    Diagnostic,
    ErrorKind,
    InputError,
    InternalError,
    LimitError,
    OmnigraphError,
    StorageError,
    TextError,
    UsageError,
    Violation,
)

_Function = TypeVar("_Function", bound=Callable[..., Any])

_NOTE = "omnigraph-error: "
_DETAILS_MAX = 64_000
_REASON_MAX = 600
_TRACEBACK_MAX = 4_000


def task(function: _Function) -> _Function:
    """Mark a function for executors, so that an error of ours raised in it arrives whole.

    For the functions of ``mapInArrow`` (generators) and of ``applyInArrow`` (one or two arguments).
    """
    if inspect.isgeneratorfunction(function):

        @wraps(function)
        def stream(batches: Iterator[Any]) -> Iterator[Any]:
            with _in_task():
                yield from function(batches)

        return stream  # type: ignore[return-value]

    # Spark counts the parameters to know whether a function of a group wants the group's key.
    if len(inspect.signature(function).parameters) == 2:

        @wraps(function)
        def keyed(key: Any, table: Any) -> Any:
            with _in_task():
                return function(key, table)

        return keyed  # type: ignore[return-value]

    @wraps(function)
    def single(table: Any) -> Any:
        with _in_task():
            return function(table)

    return single  # type: ignore[return-value]


@contextmanager
def _in_task() -> Generator[None]:
    try:
        yield
    except OmnigraphError as error:
        _note(error)
        raise
    finally:
        _settle()


_settled = 0
"""How many modules were loaded when this process was looked at last."""


def _settle() -> None:
    """Take what modules consist of out of the garbage collector's sight.

    A worker of Spark collects garbage after every task and looks at all that was ever imported: 25
    ms for nothing. Called at the end of tasks, it does something only if modules came in.
    """
    global _settled
    if len(sys.modules) != _settled:
        _settled = len(sys.modules)
        gc.freeze()


def _note(error: OmnigraphError) -> None:
    """Write the fields of an error into its traceback."""
    fields = {
        "class": type(error).__name__,
        "message": error.message,
        "kind": str(error.kind),
        "hint": error.hint,
        "details": error.details,
    }
    text = json.dumps(fields, default=str)
    if len(text) > _DETAILS_MAX:
        text = json.dumps(fields | {"details": {}}, default=str)
    if not any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ())):
        error.add_note(_NOTE + text)


@contextmanager
def translated(doing: str = "running on Spark") -> Generator[None]:
    """Raise our own error for anything that Spark reports inside. ``doing`` completes
    "failed while …"."""
    try:
        yield
    except OmnigraphError:
        raise
    except Exception as error:
        if not _is_spark(error):
            raise
        raise translate(error, doing) from error


def _is_spark(error: Exception) -> bool:
    from pyspark.errors import PySparkException

    roots = {cls.__module__.split(".")[0] for cls in type(error).__mro__}
    # Of what Spark is reached by only one is installed: py4j, or grpc for a Connect server.
    known = isinstance(error, PySparkException) or roots & {"py4j", "grpc"}
    return bool(known) or _is_lost_gateway(error)


def _is_lost_gateway(error: Exception) -> bool:
    """Whether py4j met a JVM that is not there: it lets the error of the socket through."""
    if not isinstance(error, ConnectionError):
        return False
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_globals.get("__name__", "").startswith("py4j."):
            return True
        frame = frame.tb_next
    return False


def translate(error: Exception, doing: str) -> OmnigraphError:
    """Our error for an exception of pyspark, py4j or grpc."""
    names = {cls.__name__ for cls in type(error).__mro__}
    text = str(error)
    # py4j without an exception of Java's: the JVM was gone before it could answer.
    unanswered = "Py4JError" in names and "Py4JJavaError" not in names
    if unanswered or names & {"ConnectionError", "RpcError"}:
        from omnigraph.spark.jvm import log_of_ended

        # Of the log only this: it also holds what became of earlier jobs.
        out_of_memory = "OutOfMemoryError" in (log_of_ended() or "")
        text = f"SESSION_LOST {text} {'OutOfMemoryError' if out_of_memory else ''}"
    return translate_text(text, names, doing)


def translate_text(text: str, names: set[str], doing: str) -> OmnigraphError:
    """Our error for what Spark says; ``names`` are the exception's class and its bases."""
    if (ours := _ours(text)) is not None:
        return ours
    worker = _worker_reason(text)
    for rule in _RULES:
        if found := re.search(rule.pattern, text):
            says = rule.says.format(*found.groups())
            reason = "" if rule.complete else f": {worker or _first_line(text)}"
            message = f"Spark failed while {doing}: {says}{reason}"[:_REASON_MAX]
            return rule.raises(message, kind=rule.kind, hint=rule.hint)
    if worker is not None:
        trace = _worker_traceback(text)
        # An exception out of a function that the caller put into the data is the caller's.
        if any(place in trace for place in (_HERE, *_PLACES)):
            return InternalError(
                f"Spark failed while {doing}: {worker}", details={"traceback": trace}
            )
        return InputError(f"the given data fails while {doing}: {worker}")
    if names & _DATA_ERRORS:
        return InputError(f"Spark cannot evaluate the data while {doing}: {_first_line(text)}")
    return InternalError(
        f"Spark failed while {doing}: {_first_line(text)}",
        details={"traceback": text[:_TRACEBACK_MAX]},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """How a family of Spark's messages reads in our words. The first rule that fits wins."""

    pattern: str
    raises: type[OmnigraphError]
    kind: ErrorKind
    says: str
    hint: str | None = None
    complete: bool = False
    """Whether ``says`` is all there is to say; else Spark's own reason follows."""


_MEMORY_HINT = (
    "give Spark more memory (OMNIGRAPH_SPARK_MEMORY, or spark.driver.memory and "
    "spark.executor.memory of your session), or fewer tasks at a time"
)
_RULES = (
    _Rule(
        pattern=r"OutOfMemoryError|SparkOutOfMemory|UNABLE_TO_ACQUIRE_MEMORY|ArrowMemoryError"
        r"|^MemoryError\b|\nMemoryError\b|OOMKilled|exit(?:ed with)? code 137"
        r"|spark\.driver\.maxResultSize",
        raises=LimitError,
        kind=ErrorKind.LIMIT,
        says="out of memory",
        hint=_MEMORY_HINT,
        complete=True,
    ),
    _Rule(
        pattern=r"No space left on device|Disk quota exceeded",
        raises=StorageError,
        kind=ErrorKind.STORAGE_FULL,
        says="a disk is full",
        hint="Spark keeps intermediate results in spark.local.dir (SPARK_LOCAL_DIRS)",
        complete=True,
    ),
    _Rule(
        pattern=r"PYTHON_VERSION_MISMATCH",
        raises=UsageError,
        kind=ErrorKind.USAGE,
        says="Spark's workers run another Python than this program",
        hint="set PYSPARK_PYTHON to a Python of this version on every worker",
    ),
    _Rule(
        pattern=r"Cannot run program \"([^\"]*)\"",
        raises=UsageError,
        kind=ErrorKind.USAGE,
        says="a worker cannot start Python as {}",
        hint="set PYSPARK_PYTHON to the path that Python has on every worker",
        complete=True,
    ),
    _Rule(
        pattern=r"(?:ModuleNotFoundError|ImportError): No module named '([\w.]+)'"
        r"|PACKAGE_NOT_INSTALLED\] (\w+)",
        raises=UsageError,
        kind=ErrorKind.USAGE,
        says="a worker lacks the Python package {0}",
        hint="install what omnigraph depends on for the Python of Spark's workers "
        "(PYSPARK_PYTHON names that Python)",
        complete=True,
    ),
    _Rule(
        pattern=r"Python worker exited unexpectedly|Python worker failed to connect back",
        raises=StorageError,
        kind=ErrorKind.STORAGE_TRANSIENT,
        says="a Python process of Spark died",
        hint=f"the usual reason is that the machine ran out of memory: {_MEMORY_HINT}",
        complete=True,
    ),
    _Rule(
        pattern=r"ExecutorLostFailure|Executor heartbeat timed out|Lost executor|FetchFailed"
        r"|(?:Master|Worker) removed|all masters are unresponsive|Initial job has not accepted",
        raises=StorageError,
        kind=ErrorKind.STORAGE_TRANSIENT,
        says="Spark lost a worker too often",
        hint="look at the workers' logs; nothing was published, so the operation can be repeated",
    ),
    _Rule(
        pattern=r"^SESSION_LOST|stopped SparkContext|SparkContext was shut down"
        r"|INVALID_HANDLE\.SESSION|StatusCode\.(?:UNAVAILABLE|CANCELLED)|SESSION_CLOSED",
        raises=StorageError,
        kind=ErrorKind.STORAGE_TRANSIENT,
        says="the Spark session has ended",
        hint="nothing was published; start a new session and repeat the operation",
        complete=True,
    ),
    _Rule(
        pattern=r"SPARK_JOB_CANCELLED|OPERATION_CANCELED|Job \d+ cancelled",
        raises=StorageError,
        kind=ErrorKind.STORAGE_TRANSIENT,
        says="the job was cancelled",
        complete=True,
    ),
)
_DATA_ERRORS = {
    "AnalysisException",
    "ArithmeticException",
    "ArrayIndexOutOfBoundsException",
    "DateTimeException",
    "IllegalArgumentException",
    "NumberFormatException",
    "SparkNoSuchElementException",
    "SparkRuntimeException",
}
"""What Spark raises about a DataFrame's own columns and expressions."""


_HERE = str(Path(__file__).parent.parent)
_PLACES = (".zip/omnigraph/", "-packages/omnigraph/")
"""Where a line of a worker's traceback is in our code: here, as sent, as installed."""


def _ours(text: str) -> OmnigraphError | None:
    """The error of ours that a task raised, if one did."""
    notes = re.findall(rf"^{_NOTE}(\{{.*\}})\s*$", text, re.M)
    for note in reversed(notes):
        try:
            return _rebuilt(json.loads(note))
        except (ValueError, KeyError, TypeError):
            continue
    found = re.findall(r"^omnigraph\.errors\.(\w+): (.*?)(?:\n  hint: (.*?))?$", text, re.M)
    if not found:
        return None
    name, message, hint = found[-1]
    raises: Any = getattr(errors, name, InternalError)
    simple = issubclass(raises, OmnigraphError) and raises.__init__ is OmnigraphError.__init__
    return (raises if simple else InternalError)(message, hint=hint or None)


def _rebuilt(fields: dict[str, Any]) -> OmnigraphError:
    raises: Any = getattr(errors, fields["class"])
    kind, hint, details = ErrorKind(fields["kind"]), fields["hint"], fields["details"]
    if raises is ConstraintError and details:
        violations = [Violation(**violation) for violation in details["violations"]]
        total = details["violation_count"]
        return ConstraintError(violations, total=total, kind=kind, hint=hint)
    if issubclass(raises, TextError) and details:
        error = raises(details["source"], [Diagnostic(**d) for d in details["diagnostics"]])
        # The lines of the text stayed behind; the message was made with them.
        error.message, error.args = fields["message"], (fields["message"],)
        return error
    simple: Any = raises if raises.__init__ is OmnigraphError.__init__ else InternalError
    return simple(fields["message"], kind=kind, hint=hint, details=details)


def _worker_traceback(text: str) -> str:
    """The last traceback of a Python worker in the text, with its exception; empty without one."""
    start = text.rfind("Traceback (most recent call last):")
    if start < 0:
        return ""
    end = re.search(r"\n\tat |\n\s*JVM stacktrace|\s*SQLSTATE: \w+\s*(?:\n|$)", text[start:])
    trace = text[start : start + end.start()] if end else text[start:]
    return trace.strip()[-_TRACEBACK_MAX:]


def _worker_reason(text: str) -> str | None:
    """The exception that ended a Python worker's task: ``ValueError: …``."""
    lines = _worker_traceback(text).splitlines()[1:]
    for number, line in enumerate(lines):
        if line and not line.startswith(" "):
            return " ".join(part.strip() for part in lines[number:])[:_REASON_MAX]
    return None


def _first_line(text: str) -> str:
    """What a message of Spark's begins with, without the JVM's stack and the SQL state."""
    for line in text.splitlines():
        line = re.sub(r"^: |\s*SQLSTATE: \w+;?\s*$", "", line.strip())
        if line and not line.startswith("An error occurred while calling"):
            return line[:_REASON_MAX]
    return "no reason given"
