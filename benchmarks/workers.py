"""One engine in one process, asked one question at a time over a pipe.

    queries.py ──question, argument──▶ [time the engine's answer] ──ms, rows──▶ queries.py

The clock runs inside the worker and around the engine's method alone, so the pipe costs nothing.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from peers import ENGINES, Engine, Unavailable
from social import Files, Rows


class EngineError(Exception):
    """An engine failed; the text is its traceback."""


class Worker:
    """The handle of a process that runs one engine. ``name`` tells two of one engine apart."""

    def __init__(self, name: str, engine: str, files: Files, place: Path) -> None:
        self.name = name
        self.engine = engine
        # A fresh interpreter, not a fork: threads of one engine must not leak into another's.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(theirs, engine, files, place), name=name, daemon=True
        )
        self._process.start()
        theirs.close()
        try:
            self._receive()
        except Exception:
            self._process.join()
            raise

    def can(self, question: str) -> bool:
        return hasattr(ENGINES[self.engine], question)

    def ask(self, question: str, argument: Any) -> tuple[float, Rows]:
        """Milliseconds and the rows of the answer."""
        self._pipe.send((question, argument))
        return self._receive()

    def close(self) -> None:
        if self._process.is_alive():
            self._pipe.send(None)
        self._process.join()

    def _receive(self) -> Any:
        try:
            kind, value = self._pipe.recv()
        except EOFError:
            self._process.join()
            raise EngineError(f"{self.name} died, exit code {self._process.exitcode}") from None
        if kind == "answer":
            return value
        raise (Unavailable if kind == "unavailable" else EngineError)(value)


def serve(pipe: Connection, engine_name: str, files: Files, place: Path) -> None:
    """The worker's life: open, then answer until told to stop."""
    try:
        engine = ENGINES[engine_name](files, place)
        engine.open()
    except Unavailable as e:
        return pipe.send(("unavailable", str(e)))
    except Exception:
        return pipe.send(("failed", traceback.format_exc()))
    pipe.send(("answer", None))
    while (request := pipe.recv()) is not None:
        try:
            reply = ("answer", timed(engine, *request))
        except Exception:
            reply = ("failed", traceback.format_exc())
        pipe.send(reply)
    engine.close()


def timed(engine: Engine, question: str, argument: Any) -> tuple[float, Rows]:
    method = getattr(engine, question)
    started = time.perf_counter()
    result = method(argument)
    elapsed_ms = (time.perf_counter() - started) * 1e3
    rows = engine.rows(result)
    del result
    engine.rest()
    return elapsed_ms, rows
