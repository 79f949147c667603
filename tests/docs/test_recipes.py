"""The recipes run as their schedulers would run them; stand-ins take the place of the schedulers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from doc_pages import ROOT, blocks

import omnigraph

PAGE = ROOT / "docs" / "guide" / "recipes.md"
DAY = "2026-03-01"
CALLS = (
    '{"type": "Vessel", "data": {"imo": 9300001, "name": "Alba"}}\n'
    '{"type": "Port", "data": {"code": "AAR"}}\n'
    '{"edge": "CallsAt", "from": "9300001", "to": "AAR", "data": {"on": "2026-03-01"}}\n'
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The files of the page, on local disk: only the addresses are others."""
    lake = tmp_path / "calls" / DAY
    lake.mkdir(parents=True)
    (lake / "part.jsonl").write_text(CALLS)
    found = {
        block.words[1]: block.text.replace("s3://harbour/fleet", str(tmp_path / "fleet")).replace(
            "s3://lake/", f"{tmp_path}/"
        )
        for block in blocks(PAGE)
        if len(block.words) > 1
    }
    stand_in(monkeypatch, "pipeline", found["pipeline.py"])
    return found


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, code: str = "", **names: Any) -> None:
    module = ModuleType(name)
    vars(module).update(names)
    exec(compile(code, f"{name}.py", "exec"), vars(module))
    monkeypatch.setitem(sys.modules, name, module)


def run(code: str, name: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": name}
    exec(compile(code, name, "exec"), namespace)
    return namespace


def called_or_plain(*args: Any, **options: Any) -> Callable[..., Any]:
    """A decorator that changes nothing, with or without options."""
    return args[0] if args and callable(args[0]) else lambda function: function


def test_the_dag_of_airflow(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Skipped(Exception):
        pass

    class Failed(Exception):
        pass

    def task(*args: Any, **options: Any) -> Callable[..., Any]:
        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            wants_day = "ds" in function.__code__.co_varnames[: function.__code__.co_argcount]
            return lambda *given: function(*given, **({"ds": DAY} if wants_day else {}))

        return decorate(args[0]) if args else decorate

    stand_in(monkeypatch, "airflow")
    stand_in(
        monkeypatch,
        "airflow.exceptions",
        AirflowFailException=Failed,
        AirflowSkipException=Skipped,
    )
    stand_in(monkeypatch, "airflow.sdk", dag=called_or_plain, task=task)
    run(files["airflow_dag.py"], "airflow_dag.py")
    with omnigraph.open(tmp_path / "fleet") as graph:
        assert graph.snapshot().count("CallsAt") == 1
        assert graph.branches.list() == ["main"]
    with pytest.raises(Skipped):
        run(files["airflow_dag.py"], "airflow_dag.py")
    (tmp_path / "calls" / DAY / "part.jsonl").write_text('{"type": "Vessel", "data": {}}\n')
    with pytest.raises(Failed):
        run(files["airflow_dag.py"], "airflow_dag.py")


def test_the_asset_of_dagster(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(
        monkeypatch,
        "dagster",
        DailyPartitionsDefinition=SimpleNamespace,
        RetryPolicy=SimpleNamespace,
        AssetExecutionContext=SimpleNamespace,
        MaterializeResult=SimpleNamespace,
        Definitions=SimpleNamespace,
        asset=called_or_plain,
    )
    asset = run(files["dagster_assets.py"], "dagster_assets.py")["fleet_calls"]
    done = asset(SimpleNamespace(partition_key=DAY)).metadata
    with omnigraph.open(tmp_path / "fleet") as graph:
        assert done == {"new": True, "calls": 1, "commit": graph.snapshot().commit.id}
    assert asset(SimpleNamespace(partition_key=DAY)).metadata == {"new": False}


def test_the_model_of_dbt(files: dict[str, str], tmp_path: Path) -> None:
    sys.modules["pipeline"].prepare(str(tmp_path / "fleet"))
    with omnigraph.open(tmp_path / "fleet") as graph:
        graph.load(tmp_path / "calls" / DAY / "part.jsonl")
    model = run(files["dbt_vessels.py"], "dbt_vessels.py")["model"]
    config = SimpleNamespace(config=lambda **options: None)
    session = SimpleNamespace(from_arrow=lambda table: table)
    assert model(config, session).to_pylist() == [{"imo": 9300001, "name": "Alba"}]
