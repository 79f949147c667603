"""Time of work without imports."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from omnigraph.testing.clock import ManualClock
from omnigraph.work_time import WorkClock


@pytest.fixture
def slow_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """Modules that take three seconds to import, one of them with another of two."""
    clock = ManualClock()
    (tmp_path / "slow_inner.py").write_text("import slow_clock\nslow_clock.clock.advance(2.0)\n")
    (tmp_path / "slow_outer.py").write_text(
        "import slow_clock\nslow_clock.clock.advance(1.0)\nimport slow_inner\n"
    )
    (tmp_path / "slow_broken.py").write_text(
        "import slow_clock\nslow_clock.clock.advance(5.0)\nraise ValueError\n"
    )
    (tmp_path / "slow_clock.py").write_text("clock = None\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("slow_clock")
    monkeypatch.setattr(module, "clock", clock)
    for name in ("slow_clock", "slow_inner", "slow_outer"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "slow_clock", module)
    return clock


def test_the_clock_stands_still_while_modules_are_imported(slow_modules: ManualClock) -> None:
    before = list(sys.meta_path)
    with WorkClock(slow_modules) as clock:
        started_s = clock.monotonic_s()
        slow_modules.advance(1.0)
        outer = importlib.import_module("slow_outer")
        slow_modules.advance(0.5)
        with pytest.raises(ValueError):
            importlib.import_module("slow_broken")
        assert clock.monotonic_s() - started_s == 1.5
    assert sys.meta_path == before
    assert "exec_module" not in vars(outer.__spec__.loader)
    assert importlib.reload(outer) is outer
    sys.modules.pop("slow_outer")
    sys.modules.pop("slow_inner")


def test_nothing_is_found_that_is_not_there(slow_modules: ManualClock) -> None:
    with WorkClock(slow_modules), pytest.raises(ModuleNotFoundError):
        importlib.import_module("slow_nowhere")
