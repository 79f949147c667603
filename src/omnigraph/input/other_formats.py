"""Files that are plainly not JSONL: one helpful sentence instead of a finding per line."""

from __future__ import annotations

from omnigraph.errors import InputError
from omnigraph.lang.printable import one_line

_STARTS: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
)


def refuse_foreign_format(name: str, start: bytes) -> None:
    """Raise if the first bytes of a source cannot begin JSONL."""
    for magic, what, hint in _STARTS:
        if start.startswith(magic):
            raise _refusal(name, what, hint)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    first = text.split(b"\n", 1)[0].strip()
    if first == b"[" or first.replace(b" ", b"").startswith(b"[{"):
        raise _refusal(name, "a JSON array", "write one object per line, without commas between")
    if first == b"{":
        raise _refusal(name, "pretty-printed JSON", "write every object on one line")
    if first and not first.startswith((b"{", b'"')) and b"," in first and b"{" not in first:
        raise _refusal(name, "CSV", 'name its type: type="Person", or --type Person')


def _refusal(name: str, what: str, hint: str) -> InputError:
    message = f"{one_line(name)}:1: this is {what}, not JSONL (one JSON object per line)"
    problem = {"source": name, "line": 1, "message": f"this is {what}, not JSONL"}
    return InputError(
        message,
        hint=hint,
        details={"problems": [problem], "problem_count": 1, "stopped": True},
    )
