"""The analyzer: the one answer to "which words does this text have?", for columns and for queries.

    text column ─▶ [analyse] ─▶ text_index            query text ─▶ [tokens] ─▶ text_index

A word of a text is made in two steps. First the text is cut, by the kind of each character:

    letter       Unicode categories L and N           words are runs of these
    ideograph    Han, and Hiragana letters            each is a word of its own
    attached     categories M and Cf                  belongs to whatever stands before it
    separator    everything else, and U+200B          is in no word

A letter or digit whose compatibility form (NFKD) contains a separator, such as `½`, is a separator
itself; one whose form contains an ideograph counts as an ideograph.

Then every word is folded: compatibility form (NFKD); full case folding; accents and vowel points
taken out (marks below U+0780, the blocks of combining diacritics, variation selectors), as well as
invisible format characters; a few Latin letters that have no decomposition spelled out (`ø` is `o`,
`æ` is `ae`); composed again (NFC). A word of which nothing is left is no word. So `Straße` and
`STRASSE` are one word, as are `Café` and `cafe`; signs that change a word, as in Devanagari, stay.
There are no stop words and there is no stemming.

``tokens`` does this character by character. ``analyse`` does it for a column with array operations
and folds each distinct word once; the two are held equal by tests.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc

SEPARATOR, LETTER, IDEOGRAPH, ATTACHED = range(4)

# Text is cut in pieces of about this size: the arrays of a piece stay near the processor.
PIECE_BYTES = 1 << 20

_ZERO_WIDTH_SPACE = 0x200B
_MARKS_DROPPED_BELOW = 0x0780
_IDEOGRAPHS = (
    (0x3005, 0x3007),  # Iteration mark, closing mark, zero.
    (0x3021, 0x3029),  # Hangzhou numerals.
    (0x3041, 0x3096),  # Hiragana letters.
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_MARK_BLOCKS_DROPPED = (
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0xFE00, 0xFE0F),
    (0xFE20, 0xFE2F),
    (0xE0100, 0xE01EF),
)
_LATIN = {
    "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ŧ": "t",
    "ı": "i",
}  # fmt: skip


@cache
def kind_of(code: int) -> int:
    """What a character does when a text is cut into words."""
    character = chr(code)
    category = unicodedata.category(character)
    if category[0] == "M" or (category == "Cf" and code != _ZERO_WIDTH_SPACE):
        return ATTACHED
    form = unicodedata.normalize("NFKD", character)
    if category[0] not in "LN" or any(unicodedata.category(c)[0] not in "LNM" for c in form):
        return SEPARATOR
    return IDEOGRAPH if any(_within(ord(c), _IDEOGRAPHS) for c in form) else LETTER


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)


class _Folded(dict[int, str]):
    """What becomes of a character after it was decomposed; filled as characters are met."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        dropped = category == "Cf" or (
            category[0] == "M"
            and (code < _MARKS_DROPPED_BELOW or _within(code, _MARK_BLOCKS_DROPPED))
        )
        self[code] = "" if dropped else _LATIN.get(character, character)
        return self[code]


_FOLDED = _Folded()


def fold(text: str) -> str:
    """The folded form of a word, or of words between line breaks: a line break stays as it is."""
    if text.isascii():
        return text.lower()
    bare = unicodedata.normalize("NFKD", text).translate(_FOLDED)
    # Folding the case can bring decomposable characters back, so the first step is done again.
    folded = unicodedata.normalize("NFKD", bare.casefold()).translate(_FOLDED)
    return unicodedata.normalize("NFC", folded)


def tokens(text: str) -> list[str]:
    """The words of a text, in order."""
    pieces: list[str] = []
    start: int | None = None
    base = SEPARATOR  # The kind of the last character that was not attached to another one.
    for at, character in enumerate(text):
        kind = kind_of(ord(character))
        breaks = kind == IDEOGRAPH or (kind == LETTER and base == IDEOGRAPH)
        if start is not None and (kind == SEPARATOR or breaks):
            pieces.append(text[start:at])
            start = None
        if start is None and kind != SEPARATOR:
            start = at
        if kind != ATTACHED:
            base = kind
    if start is not None:
        pieces.append(text[start:])
    return [word for word in fold("\n".join(pieces)).split("\n") if word]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Analysed:
    """The words of a column, row after row."""

    terms: list[str]
    """Distinct words; their places in the list are the numbers below."""
    words: npt.NDArray[np.int32]
    """Number of each word of the column, in order."""
    lengths: npt.NDArray[np.int32]
    """How many words each row has; 0 if it is null."""
    documents: int
    """Rows that are not null."""

    def row(self, number: int) -> list[str]:
        """The words of one row, as ``tokens`` gives them."""
        end = int(self.lengths[: number + 1].sum())
        return [self.terms[i] for i in self.words[end - int(self.lengths[number]) : end]]


def analyse(column: pa.ChunkedArray | pa.Array) -> Analysed:
    """The words of every row of a text column."""
    text = _plain(column)
    cut = [_cut(piece) for piece in _pieces(text)]
    lengths = np.concatenate([np.empty(0, np.int32), *(counts for _, counts in cut)])
    chunks = [raw for raw, _ in cut]
    documents = len(text) - column.null_count
    if not any(map(len, chunks)):  # Not every pyarrow makes a dictionary of nothing.
        return Analysed(terms=[], words=np.empty(0, np.int32), lengths=lengths, documents=documents)
    # One dictionary for all pieces: Arrow gives the pieces of a chunked array the same one.
    encoded = pc.dictionary_encode(pa.chunked_array(chunks, pa.large_string())).combine_chunks()
    words: npt.NDArray[np.int32] = encoded.indices.to_numpy(zero_copy_only=False)
    terms, number_of = _folded_terms(encoded.dictionary.to_pylist())
    if number_of is not None:
        words = number_of[words]
        gone = words < 0
        if gone.any():
            rows = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
            lengths = np.bincount(rows[~gone], minlength=len(lengths)).astype(np.int32)
            words = words[~gone]
    return Analysed(terms=terms, words=words, lengths=lengths, documents=documents)


def _folded_terms(raw: list[str]) -> tuple[list[str], npt.NDArray[np.int32] | None]:
    """Distinct folded words, and the number of each raw one (-1: nothing is left of it).

    None instead of numbers means that raw words are folded already: ASCII is when it is cut.
    """
    foreign = [word for word in raw if not word.isascii()]
    if not foreign:
        return raw, None
    folded = dict(zip(foreign, fold("\n".join(foreign)).split("\n"), strict=True))
    numbers: dict[str, int] = {}
    number_of = np.empty(len(raw), np.int32)
    for at, word in enumerate(raw):
        word = folded.get(word, word)
        number_of[at] = numbers.setdefault(word, len(numbers)) if word else -1
    return list(numbers), number_of


# ---------------------------------------------------------------- cutting a column


def _plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One array with 64-bit offsets, where a null is an empty text and hides nothing behind it."""
    text = pc.cast(column, pa.large_string())
    if isinstance(text, pa.ChunkedArray):
        text = text.combine_chunks()
    return pc.fill_null(text, "") if text.null_count else text


def _pieces(text: pa.Array) -> Iterator[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]]:
    """Bytes of consecutive rows, and where each row ends in them."""
    _, offset_buffer, text_buffer = text.buffers()
    if not len(text) or offset_buffer is None:
        return
    edges = np.frombuffer(offset_buffer, np.int64)[text.offset : text.offset + len(text) + 1]
    data = np.frombuffer(text_buffer or b"", np.uint8)
    first = 0
    while first < len(text):
        beyond = int(np.searchsorted(edges, edges[first] + PIECE_BYTES, side="right")) - 1
        last = min(max(beyond, first + 1), len(text))
        yield data[edges[first] : edges[last]], edges[first : last + 1] - edges[first]
        first = last


_ASCII_WORD = np.array(
    [ord(chr(c).lower()) if c < 128 and chr(c).isalnum() else 0 for c in range(256)], np.uint8
)
_ASCII_LOWER = np.array([ord(chr(c).lower()) if c < 128 else c for c in range(256)], np.uint8)


def _cut(
    piece: tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]],
) -> tuple[pa.Array, npt.NDArray[np.int32]]:
    """Words of a piece, folded as far as they are ASCII, and how many of them each row has."""
    data, edges = piece
    if not len(data):
        return pa.array([], pa.large_string()), np.zeros(len(edges) - 1, np.int32)
    if int(data.max()) < 128:
        lowered = _ASCII_WORD[data]
        inside = lowered != 0
        starts = _starts(inside, edges[:-1])
        joined = lowered[inside].tobytes()
        offsets = _offsets(inside, starts)
        first_words = np.flatnonzero(starts)
    else:
        codes = np.frombuffer(data.tobytes().decode("utf-8").encode("utf-32-le"), np.uint32)
        width = 1 + (codes >= 0x80).view(np.uint8) + (codes >= 0x800) + (codes >= 0x10000)
        byte_at = np.concatenate([[0], np.cumsum(width, dtype=np.int64)])
        edges = np.searchsorted(byte_at, edges)
        kinds = _kinds(codes)
        inside = kinds != SEPARATOR
        starts = _starts(inside, edges[:-1])
        _break_ideographs(starts, kinds, edges[:-1])
        kept = codes[inside].tobytes().decode("utf-32-le").encode("utf-8")
        joined = _ASCII_LOWER[np.frombuffer(kept, np.uint8)].tobytes()
        ends = np.concatenate([[0], np.cumsum(width[inside], dtype=np.int64)])
        offsets = ends[_offsets(inside, starts)]
        first_words = np.flatnonzero(starts)
    counts = np.diff(np.searchsorted(first_words, edges)).astype(np.int32)
    words = pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(joined)
    )
    return words, counts


def _starts(inside: npt.NDArray[np.bool_], firsts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which characters begin a word: those behind a separator, and the first of a row."""
    starts = inside.copy()
    starts[1:] &= ~inside[:-1]
    firsts = firsts[firsts < len(inside)]
    starts[firsts] = inside[firsts]
    return starts


def _offsets(inside: npt.NDArray[np.bool_], starts: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Where each word begins once all between words is taken out, and where the last ends."""
    last = inside.copy()
    last[:-1] &= ~inside[1:] | starts[1:]
    lengths = np.flatnonzero(last) - np.flatnonzero(starts) + 1
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _kinds(codes: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    """The kind of every character; each distinct one is looked up once."""
    seen = np.zeros(int(codes.max()) + 1, np.bool_)
    seen[codes] = True
    table = np.zeros(len(seen), np.uint8)
    distinct = np.flatnonzero(seen)
    table[distinct] = [kind_of(code) for code in distinct.tolist()]
    return table[codes]


def _break_ideographs(
    starts: npt.NDArray[np.bool_],
    kinds: npt.NDArray[np.uint8],
    firsts: npt.NDArray[np.int64],
) -> None:
    """Begin a word at each ideograph, and at a letter behind one and what is attached to it."""
    ideographs = kinds == IDEOGRAPH
    if not ideographs.any():
        return
    places = np.arange(len(kinds), dtype=np.int64)
    own = kinds != ATTACHED
    own[firsts[firsts < len(kinds)]] = True  # What a row begins with is attached to nothing.
    base = kinds[np.maximum.accumulate(np.where(own, places, 0))]
    starts |= ideographs
    starts[1:] |= (kinds[1:] == LETTER) & (base[:-1] == IDEOGRAPH)
