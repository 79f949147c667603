"""The first request to a store: it must be answered soon, or the caller is told.

    place -> first request, in a thread -> [contact] -> answer, or an error after nine seconds

Nothing listens there, the name leads nowhere, or a server takes the connection and never says a
word: the clients of both libraries try each of these again and again, for minutes at worst. A store
that has answered once, be it with a refusal, is given the time that its clients think right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar, cast

from omnigraph.errors import ErrorKind, StorageError
from omnigraph.storage.location import Location

ANSWER_MAX_S = 9.0

_T = TypeVar("_T")
_answered: set[str] = set()


def asked(place: Location, ask: Callable[[], _T]) -> _T:
    """What a request gives; if it is the first one to a store, only within nine seconds."""
    address = place.address
    if not address or address in _answered:
        return ask()
    found: SimpleQueue[tuple[_T | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            found.put((ask(), None))
        except BaseException as e:
            found.put((None, e))

    # A daemon: the end of the program does not wait for a store that says nothing.
    Thread(target=run, name=f"first request to {address}", daemon=True).start()
    try:
        value, error = found.get(timeout=ANSWER_MAX_S)
    except Empty:
        raise StorageError(
            f"the store does not answer: {address} was asked for {place.uri}"
            f" and said nothing for {ANSWER_MAX_S:.0f} s",
            kind=ErrorKind.STORAGE_TRANSIENT,
            hint="check the endpoint and the network, then repeat the command",
            details={"address": address, "bucket": place.bucket},
        ) from None
    if error is None or isinstance(error, FileNotFoundError):
        _answered.add(address)
    if error is not None:
        raise error
    return cast("_T", value)


def each(place: Location, pages: Iterable[_T]) -> Iterator[_T]:
    """The pages of a list, of which the first may be the first request."""
    waiting = iter(pages)
    while (page := asked(place, lambda: next(waiting, None))) is not None:
        yield page
