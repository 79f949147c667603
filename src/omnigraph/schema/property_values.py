"""One value at a time: the exact meaning of an input value for a property type.

    JSON line | dict record -> shape -> [values] -> rows

This is the definition. The vectorised conversions in `columns` are an optimisation of it and may
refuse more, never accept more. A value converts exactly or is refused; nothing becomes null on the
way. Numbers with a fraction arrive as `NumberText`, because the digits are needed to round once,
and only once, to the width of the column.
"""

from __future__ import annotations

import binascii
import json
import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast

import numpy as np

from omnigraph.lang.source import one_line
from omnigraph.schema import temporal
from omnigraph.schema.catalog import INTEGER_RANGES, PropertyType, Scalar

Converter = Callable[[Any], Any]

BLOB_PREFIX = "base64:"
_SHOWN_MAX = 60
_SHOWN_BITS_MAX = 10_000
"""Python refuses to print integers beyond some thousand digits."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]*")
_HUGE = 1 << 80
"""Outside of every integer type."""
_DECIMAL_EXPONENT_MAX = 30
_SINGLE, _DOUBLE, _BITS = struct.Struct("<f"), struct.Struct("<d"), struct.Struct("<Q")


class ValueRefused(Exception):
    """This value is not a value of that type; the message says why."""


@dataclass(frozen=True, slots=True)
class NumberText:
    """A JSON number as it was written: one with a fraction or exponent, `-0`, or a huge integer."""

    text: str


def shown(value: object) -> str:
    """A value in a message: JSON where possible, on one line, cut when long. Never fails."""
    try:
        text = one_line(_spelled(value))
    except Exception:  # how a value prints itself is the business of its class
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"


def _spelled(value: object) -> str:
    if isinstance(value, NumberText):
        return value.text[: _SHOWN_MAX + 1]
    if isinstance(value, str):
        return json.dumps(value[: _SHOWN_MAX + 1], ensure_ascii=False)
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS_MAX:
        return f"an integer of about {int(value.bit_length() * math.log10(2))} digits"
    if isinstance(value, (bool, int, type(None))):
        return json.dumps(value)
    if isinstance(value, (float, Decimal)):
        return str(value)
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    return f"{type(value).__name__} {value!r}"


def is_missing(value: object) -> bool:
    """Whether this is a null: None, or the NA or NaT of pandas, which is known by name only."""
    kind = type(value)
    return value is None or (
        kind.__name__ in ("NAType", "NaTType") and kind.__module__.startswith("pandas.")
    )


def converter(property_type: PropertyType) -> Converter:
    """The function that turns one non-null input value into what ``pa.array`` takes."""
    if property_type.vector_size is not None:
        return _vector_converter(property_type.vector_size)
    convert = _SCALARS[property_type.scalar]
    return _list_converter(property_type, convert) if property_type.is_list else convert


def text(value: Any) -> str:
    """A String. Text that UTF-8 cannot carry (half of a surrogate pair) is refused."""
    if not isinstance(value, str):
        raise ValueRefused(f"expected String, got {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueRefused(
            "the text holds half of a surrogate pair, which is no character"
        ) from None
    return str(value)


def decode_blob(value: str) -> bytes:
    """The bytes behind ``base64:…``."""
    if not value.startswith(BLOB_PREFIX):
        raise ValueRefused(
            f"{shown(value)} is an external reference, and external blobs are not enabled for this"
            f" graph; write the bytes as '{BLOB_PREFIX}…'"
        )
    try:
        return binascii.a2b_base64(value[len(BLOB_PREFIX) :], strict_mode=True)
    except ValueError:
        raise ValueRefused(_base64_fault(value[len(BLOB_PREFIX) :])) from None


def _base64_fault(digits: str) -> str:
    body = digits.rstrip("=")
    matched = _BASE64.match(body)
    place = matched.end() if matched else 0
    wrong = body[place : place + 1]
    if wrong.isspace():
        what = "line break" if wrong in "\r\n" else "blank"
        fault = f"a {what} at character {place + 1}: blanks and line breaks are not allowed"
    elif wrong and wrong in "-_":
        fault = f"character {place + 1} is {shown(wrong)}: write + and / instead of - and _"
    elif wrong == "=" or len(digits) - len(body) > 2:
        fault = "'=' stands only at the end, once or twice"
    elif wrong:
        fault = f"character {place + 1} is {shown(wrong)}: only A-Z a-z 0-9 + / are allowed"
    else:
        end = "" if digits.endswith("=") else " (is the '=' at the end missing?)"
        fault = f"its length, {len(digits)}, is not a multiple of 4{end}"
    return f"not valid base64: {fault}"


def _blob(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if not isinstance(value, str):
        raise ValueRefused(f"expected Blob ('{BLOB_PREFIX}…'), got {shown(value)}")
    return decode_blob(value)


def _bool(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueRefused(f"expected Bool, got {shown(value)}")
    return bool(value)


def _integer_converter(scalar: Scalar) -> Converter:
    low, high = INTEGER_RANGES[scalar]

    def convert(value: Any) -> int:
        number = _whole_decimal(value) if isinstance(value, Decimal) else _whole(value)
        if number is None:
            raise ValueRefused(f"expected {scalar}, got {shown(value)}")
        if not low <= number <= high:
            raise ValueRefused(f"{shown(value)} is out of range for {scalar} ({low}..{high})")
        return number

    return convert


def _whole(value: Any) -> int | None:
    """The integer, None when it is not written as one. `1.0` is not an integer, and no bool is."""
    if isinstance(value, NumberText):
        if value.text == "-0":
            return 0
        digits = value.text.removeprefix("-")
        # Too long for int(), but its sign is all that the range check needs.
        return (-_HUGE if value.text[0] == "-" else _HUGE) if digits.isdigit() else None
    if isinstance(value, np.integer):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _whole_decimal(value: Decimal) -> int | None:
    """The integer that a decimal is exactly; beyond every range, something of its sign."""
    if not value.is_finite():
        return None
    if value.adjusted() > _DECIMAL_EXPONENT_MAX:
        return -_HUGE if value.is_signed() else _HUGE
    return int(value) if not value or (value.adjusted() >= 0 and int(value) == value) else None


def _f64(value: Any) -> float:
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueRefused(f"expected a finite number, got {value}")
        value = NumberText(str(value))
    if isinstance(value, NumberText):
        number = float(value.text)
    elif isinstance(value, (float, np.floating)):
        number = float(value)
        if not math.isfinite(number):
            raise ValueRefused(f"expected a finite number, got {number}")
    else:
        whole = _whole(value)
        if whole is None:
            raise ValueRefused(f"expected F64, got {shown(value)}")
        try:
            number = float(whole)
        except OverflowError:
            number = math.inf
    if not math.isfinite(number):
        raise ValueRefused(f"{shown(value)} is out of range for F64")
    return number


def _f32(value: Any) -> float:
    try:
        double = _f64(value)
    except ValueRefused as error:
        raise ValueRefused(str(error).replace("F64", "F32")) from None
    digits = value.text if isinstance(value, NumberText) else None
    if isinstance(value, (int, np.integer)):
        digits = str(int(value))
    elif isinstance(value, Decimal):
        digits = str(value)
    single = _nearest_single(double, digits)
    if not math.isfinite(single):
        raise ValueRefused(f"{shown(value)} is out of range for F32")
    return single


def nearest_f32(number: float) -> float:
    """The 32-bit float nearest to a number; infinite when out of range."""
    try:
        return _SINGLE.unpack(_SINGLE.pack(number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def _nearest_single(double: float, digits: str | None) -> float:
    """The 32-bit float nearest to a decimal that was already rounded to 64 bits once.

    Rounding twice goes wrong only when the first step landed exactly in the middle between two
    singles; then the digits decide.
    """
    single = nearest_f32(double)
    # A middle between singles has at least 28 zero bits at its end: most numbers leave here.
    if (
        digits is None
        or single == double
        or not math.isfinite(single)
        or _BITS.unpack(_DOUBLE.pack(double))[0] & 0xFFFFFFF
    ):
        return single
    towards = math.copysign(math.inf, double - single)
    other = float(np.nextafter(np.float32(single), np.float32(towards)))
    exact, middle = Decimal(digits), Decimal(double)
    if (single + other) / 2 != double or exact == middle:
        return single
    return max(single, other) if exact > middle else min(single, other)


def _date(value: Any) -> int:
    if isinstance(value, np.datetime64):
        return _numpy_date(value)
    if isinstance(value, datetime):
        raise ValueRefused(f"expected Date, got the timestamp {value}")
    if isinstance(value, date):
        return temporal.day_number(value)
    if isinstance(value, str):
        day = temporal.parse_day(value)
        if day is None:
            raise ValueRefused(f"{shown(value)} is not a Date (YYYY-MM-DD, years 0001 to 9999)")
        return day
    number = _whole(value)
    if number is None:
        raise ValueRefused(f"expected Date (YYYY-MM-DD or a day count), got {shown(value)}")
    if not temporal.DAY_MIN <= number <= temporal.DAY_MAX:
        raise ValueRefused(f"day count {shown(value)} is outside of the years 0001 to 9999")
    return number


def _datetime(value: Any) -> int:
    if isinstance(value, np.datetime64):
        return _numpy_instant(value)
    if isinstance(value, datetime):
        # A pandas Timestamp is a datetime with nanoseconds; its NaT is one that equals nothing.
        ms = None
        if value == value and not getattr(value, "nanosecond", 0):
            ms = temporal.instant_ms(value)
        if ms is None:
            raise ValueRefused(f"{value} is not a DateTime of whole milliseconds")
        return ms
    if isinstance(value, date):
        return temporal.day_number(value) * temporal.MS_PER_DAY
    if isinstance(value, str):
        ms = temporal.parse_instant(value)
        if ms is None:
            raise ValueRefused(
                f"{shown(value)} is not a DateTime"
                " (YYYY-MM-DDTHH:MM:SS.mmmZ, whole milliseconds, years 0001 to 9999)"
            )
        return ms
    number = _whole(value)
    if number is None:
        raise ValueRefused(f"expected DateTime (ISO 8601 or milliseconds), got {shown(value)}")
    if not temporal.MS_MIN <= number <= temporal.MS_MAX:
        raise ValueRefused(f"{shown(value)} milliseconds is outside of the years 0001 to 9999")
    return number


def _numpy_date(value: np.datetime64) -> int:
    day = value.astype("datetime64[D]")
    if np.isnat(value) or day.astype(value.dtype) != value:
        raise ValueRefused(f"expected Date, got the timestamp {value}")
    return _date(int(day.astype(np.int64)))


def _numpy_instant(value: np.datetime64) -> int:
    ms = value.astype("datetime64[ms]")
    if np.isnat(value) or ms.astype(value.dtype) != value:
        raise ValueRefused(f"{value} is not a DateTime of whole milliseconds")
    return _datetime(int(ms.astype(np.int64)))


def _elements(value: Any, expected: str) -> Sequence[Any]:
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return cast("Sequence[Any]", value)
    if not isinstance(value, (list, tuple)):
        raise ValueRefused(f"expected {expected}, got {shown(value)}")
    return cast("Sequence[Any]", value)


def _list_converter(property_type: PropertyType, convert: Converter) -> Converter:
    expected = f"a list [{property_type.scalar}]"

    def convert_list(value: Any) -> list[Any]:
        converted: list[Any] = []
        for index, element in enumerate(_elements(value, expected)):
            try:
                converted.append(convert(element))
            except ValueRefused as error:
                if is_missing(element):
                    raise ValueRefused(f"element {index} of the list is null") from None
                raise ValueRefused(f"element {index} of the list: {error}") from None
        return converted

    return convert_list


def _vector_converter(size: int) -> Converter:
    as_list = _list_converter(PropertyType(scalar=Scalar.F32), _f32)

    def convert(value: Any) -> list[float]:
        elements = _elements(value, f"Vector({size}) (an array of {size} numbers)")
        if len(elements) != size:
            raise ValueRefused(f"expected Vector({size}), got {len(elements)} numbers")
        return as_list(elements)

    return convert


_SCALARS: dict[Scalar, Converter] = {
    Scalar.STRING: text,
    Scalar.BLOB: _blob,
    Scalar.BOOL: _bool,
    Scalar.F32: _f32,
    Scalar.F64: _f64,
    Scalar.DATE: _date,
    Scalar.DATETIME: _datetime,
    **{scalar: _integer_converter(scalar) for scalar in INTEGER_RANGES},
}
