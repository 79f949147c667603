"""Reading the documentation as a program: blocks, commands, tables, links.

A page is executed from top to bottom in one empty folder. What a fenced block does follows from the
words behind its fence:

    ```python            executed; all blocks of a page share one namespace
    ```text              after a python block: what it prints
    ```console           `$ omnigraph …` lines are run, the lines below them are their output
    ```pg fleet.pg       written to the file that is named; the same for any language
    anything else        shown to readers only

A block needs what the paragraph above it tells to install: `omnigraph[pandas]`, `pip install polars`.

`…` in expected output stands for any text, on a line of its own for any number of lines.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

ROOT = Path(__file__).parents[2]
PROMPT = "$ omnigraph "
_EXTRA = re.compile(r"(omnigraph\[\w+\]|pip install [a-z])")
_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.M | re.S)
_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
_ROW = re.compile(r"^\|(.+)\|$", re.M)


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block."""

    words: tuple[str, ...]
    """Behind the fence: the language, then perhaps a file name."""
    text: str
    line: int
    extra: str | None = None
    """What has to be installed beside the base."""

    @property
    def language(self) -> str:
        return self.words[0] if self.words else ""


def pages() -> list[Path]:
    """Every page that the repository shows to readers."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            words=tuple(found[1].split()),
            text=found[2],
            line=text.count("\n", 0, found.start()) + 1,
            extra=_extra_above(text[: found.start()]),
        )
        for found in _FENCE.finditer(text)
    ]


def _extra_above(text: str) -> str | None:
    found = _EXTRA.search(text.rstrip().rpartition("\n\n")[2])
    return found[1] if found else None


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Command lines of a console block, each with the output it shows."""
    command, shown = "", list[str]()
    for line in [*block.text.splitlines(), PROMPT]:
        if line.startswith(PROMPT):
            if command:
                yield command, "\n".join(shown).strip("\n")
            command, shown = line.removeprefix(PROMPT), []
        else:
            shown.append(line)


def run_page(page: Path, folder: Path, *, base_only: bool = False) -> int:
    """Execute a page in ``folder``, the current one; returns how many blocks did something.

    With ``base_only`` blocks that need an extra are passed over.
    """
    with _importing_from(folder):
        return _run_blocks(page, folder, base_only)


@contextmanager
def _importing_from(folder: Path) -> Generator[None]:
    """Modules that a page writes can be imported, and are forgotten after it."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(f"{folder}/"):
                del sys.modules[name]


def _run_blocks(page: Path, folder: Path, base_only: bool) -> int:
    namespace: dict[str, Any] = {"__name__": "__page__"}
    done = 0
    printed: str | None = None
    for block in blocks(page):
        where = f"{name_of(page)}:{block.line}"
        last, printed = printed, None
        if block.extra and base_only:
            continue
        if len(block.words) > 1:
            (folder / block.words[1]).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            out = io.StringIO()
            # Blank lines in front: a traceback then names the line of the page.
            source = "\n" * block.line + block.text
            with redirect_stdout(out):
                exec(compile(source, str(page), "exec"), namespace)
            printed = out.getvalue()
        elif block.language == "text" and last is not None:
            assert_shown(last, block.text, where)
        elif block.language in ("console", "bash") and PROMPT in block.text:
            for command, shown in commands(block):
                run_command(command, shown, where)
        else:
            continue
        done += 1
    return done


def run_command(command: str, shown: str, where: str) -> None:
    """Run one `omnigraph` command line and compare what it says."""
    from omnigraph.cli.main import app

    command, _, target = command.partition(" > ")
    result = CliRunner().invoke(app, shlex.split(command))
    failed = shown.startswith("error:")
    assert (result.exit_code != 0) == failed, f"{where}: {command}\n{result.output}"
    if target:
        Path(target).write_bytes(result.stdout_bytes)
    elif shown:
        assert_shown(result.output, shown, f"{where}: {command}")


def assert_shown(actual: str, shown: str, where: str) -> None:
    """What was said is what the page shows, apart from `…` and space at line ends."""
    pattern = "".join(
        r"(?:[^\n]*\n)*" if line == "…" else r"[^\n]*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in _trimmed(shown).splitlines()
    )
    said = _trimmed(actual) + "\n"
    assert re.fullmatch(pattern, said), f"{where}\n--- shown\n{shown}\n--- is\n{actual}"


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def links(page: Path) -> Iterator[str]:
    """Targets of links, outside of code."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    yield from _LINK.findall(text)


def anchors(page: Path) -> set[str]:
    """Names that a link into the page can use: one per heading."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def table_rows(page: Path) -> list[list[str]]:
    """The cells of every table row of a page; `\\|` is a bar inside a cell."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)]
        for row in _ROW.findall(text)
    ]


def code_of(cell: str) -> list[str]:
    """The code spans of a cell."""
    return re.findall(r"`([^`]+)`", cell)
