"""The network fails at the worst moment: the commit landed and its answer was lost, or it did not."""

from __future__ import annotations

import pytest

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.storage import location
from omnigraph.testing.http1 import Fault
from omnigraph.testing.proxy import CountingProxy
from support.racers import SCHEMA

ROW = [{"type": "Person", "data": {"name": "a"}}]
COMMIT = {"operation": "PUT", "path": "__manifest/_versions"}


def names(graph: omnigraph.Graph) -> list[str]:
    return sorted(graph.snapshot().rows("Person").to_arrow()["name"].to_pylist())


@pytest.mark.parametrize("fault", [Fault.DROP_AFTER, Fault.DROP_BEFORE])
def test_a_dropped_connection_neither_loses_nor_doubles_the_write(
    s3_proxied_root: str, s3_proxy: CountingProxy, fault: Fault
) -> None:
    with omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        rule = s3_proxy.fail(fault, **COMMIT)
        result = graph.load(ROW)
        assert rule.fired == 1
        assert result.commit == graph.snapshot().commit
        assert names(graph) == ["a"]
        assert len(graph.commits()) == 2


def test_an_unknown_outcome_is_said_when_the_store_is_gone(
    s3_proxied_root: str, s3_proxy: CountingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each request is made again once: how long a client waits in between is not the question.
    monkeypatch.setattr(location, "RETRIES_MAX", 1)
    with omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        graph.load(ROW)  # From now on it knows the manifest that the next one is made from.
        graph.settle()
        s3_proxy.fail(Fault.DROP_AFTER, **COMMIT, times=1)
        s3_proxy.fail(Fault.STATUS, path="__manifest/_versions", status=503, times=10_000)
        with pytest.raises(omnigraph.CommitUnknownError) as caught:
            graph.load([{"type": "Person", "data": {"name": "b"}}])
        assert caught.value.kind is ErrorKind.COMMIT_UNKNOWN
        assert caught.value.details["operation_id"] in (caught.value.hint or "")


def test_a_store_that_refuses_the_commit_for_good_is_reported(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    with omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        s3_proxy.fail(Fault.STATUS, **COMMIT, status=403, times=1000)
        with pytest.raises(omnigraph.StorageError) as caught:
            graph.load(ROW)
        assert caught.value.kind is ErrorKind.STORAGE_DENIED
        assert len(graph.commits()) == 1


def test_housekeeping_that_fails_harms_nobody(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    with omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        s3_proxy.fail(Fault.STATUS, operation="POST", status=403, times=1000)
        s3_proxy.fail(Fault.STATUS, operation="PUT", path="_head.json", status=403, times=1000)
        graph.load(ROW)
        graph.settle()
        graph.load([{"type": "Person", "data": {"name": "b"}}])
    with omnigraph.open(s3_proxied_root) as graph:
        assert names(graph) == ["a", "b"]
