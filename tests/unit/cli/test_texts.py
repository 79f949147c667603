"""Every value that a command shows has one text, and making it needs nothing heavy."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from omnigraph.cli import answers
from omnigraph.cli.lines import Line, TextLook, columns, fact_lines, indented, plain, size_text
from omnigraph.cli.output import rendered
from omnigraph.cli.texts import TEXTS


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_takes_the_type_that_it_is_registered_for(name: str) -> None:
    module, _, function = TEXTS[name].partition(".")
    made = getattr(import_module(f"omnigraph.cli.texts.{module}"), function)
    value, look, *_ = inspect.signature(made).parameters.values()
    assert (value.annotation, look.annotation) == (name, "TextLook")


def test_every_answer_has_a_text_or_is_one() -> None:
    for name, kind in inspect.getmembers(answers, inspect.isclass):
        if kind.__module__ == answers.__name__ and hasattr(kind, "to_dict"):
            shown = name in TEXTS or issubclass(kind, answers.Verbatim) or name == "Answer"
            assert shown, name


def test_columns_stand_below_each_other_also_with_wide_characters() -> None:
    rows = [["a", "1"], [("京都", "cyan"), "20"], [["b", ("c", "red")], "300"]]
    lines = [plain(line) for line in columns(rows, right=(1,))]
    assert lines == ["a       1", "京都   20", "bc    300"]
    assert [plain(line) for line in columns([["a", ""], ["bb", "c"]])] == ["a", "bb  c"]
    assert list(columns([])) == []


def test_facts_that_are_not_known_are_left_out() -> None:
    facts = [("one", "1"), ("several", None), ("two", "2")]
    assert [plain(line) for line in fact_lines(facts)] == ["one: 1", "two: 2"]
    assert [plain(line) for line in indented("a\n\x1b[2J")] == ["", "    a", "    \\x1b[2J"]
    assert list(indented(None)) == []


def test_a_pipe_gets_plain_text_unless_colours_are_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    lines: list[Line] = [[("red", "red"), " plain  "], [], ["end"]]
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)
    assert rendered(lines, sys.stdout) == "red plain\n\nend\n"
    assert rendered([], sys.stdout) == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert rendered(lines, sys.stdout) == "\x1b[31mred\x1b[0m plain\n\nend\n"
    assert rendered([], sys.stdout) == ""


def test_a_look_has_the_characters_that_a_stream_has() -> None:
    assert (TextLook().arrow, TextLook().ellipsis, TextLook().rule) == ("→", "…", "─")
    plain_look = TextLook(ascii_only=True)
    assert (plain_look.arrow, plain_look.ellipsis, plain_look.rule) == ("->", "...", "-")


def test_sizes() -> None:
    sizes = (0, 999, 1000, 4_100, 2_000_000_000, 5 * 10**15)
    assert [size_text(s) for s in sizes] == [
        "0 B", "999 B", "1.0 KB", "4.1 KB", "2.0 GB", "5000.0 TB",
    ]  # fmt: skip
