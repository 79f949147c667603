"""The walks of docs/dev/walks.md as data, and the calls that really happen."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import omnigraph

PAGE = Path(__file__).parents[2] / "docs" / "dev" / "walks.md"
SRC = f"{Path(omnigraph.__file__).parent}/"
LINES_MAX = 25


def steps_of(title: str) -> list[str]:
    """The functions of one walk, in order."""
    sections = PAGE.read_text().split("\n## ")
    (text,) = (s for s in sections if s.startswith(f"{title}\n"))
    assert len(text.strip().splitlines()) <= LINES_MAX, f"{title}: a walk is short"
    return re.findall(r"`([\w/]+\.py::[\w.]+)`", text)


def calls_of(run: Callable[[], Any]) -> list[str]:
    """Every call of ours while something runs, in all threads."""
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SRC):
            calls.append(f"{code.co_filename.removeprefix(SRC)}::{code.co_qualname}")

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls
