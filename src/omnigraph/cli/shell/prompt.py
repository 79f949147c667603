"""The prompt: keys, completion menu, history. The only importer of prompt_toolkit.

keyboard -> [prompt] -> session
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.output import Output

from omnigraph.cli.shell.complete import complete
from omnigraph.cli.shell.reading import is_complete, styled
from omnigraph.cli.shell.session import Session
from omnigraph.cli.streams import one_line


def interact(
    session: Session,
    history: History,
    *,
    keys: Input | None = None,
    screen: Output | None = None,
) -> None:
    """Ask and answer until the session is done. ``keys`` and ``screen`` default to the terminal."""
    asking: PromptSession[str] = PromptSession(
        history=history,
        completer=ShellCompleter(session),
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        lexer=_Highlighter(),
        multiline=True,
        prompt_continuation=lambda width, line, soft: " " * (width - 2) + "| ",
        key_bindings=_bindings(),
        input=keys,
        output=screen,
    )
    while not session.done:
        try:
            text = asking.prompt(f"{one_line(session.branch)}> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        try:
            session.run(text)
        except KeyboardInterrupt as interrupt:
            session.interrupted(interrupt)


def open_history(environment: Mapping[str, str]) -> History:
    """Earlier inputs from a file that only its owner reads; kept in memory if there can be none."""
    try:
        state = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
        file = Path(state) / "omnigraph" / "history"
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Queries quote data, so no other user may look; the mode only counts when it is created.
        os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        return FileHistory(str(file))
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory.
        return InMemoryHistory()


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        document = buffer.document
        at_end = not document.text_after_cursor.strip()
        if at_end and (is_complete(document.text) or not document.current_line.strip()):
            buffer.validate_and_handle()
        else:
            buffer.newline()

    @bindings.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    return bindings


class ShellCompleter(Completer):
    """Candidates of the pure function, in the shape of the menu."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        length, found = complete(document.text_before_cursor, self._session.catalog)
        for candidate in found:
            yield Completion(candidate.text, start_position=-length, display_meta=candidate.note)


class _Highlighter(Lexer):
    """Styled pieces, line by line."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        pieces: StyleAndTextTuples = [*styled(document.text)]
        lines = list(split_lines(pieces))
        return lambda number: lines[number] if number < len(lines) else []
