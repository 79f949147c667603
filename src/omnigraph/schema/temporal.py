"""Days and instants as text, exactly: the grammar of Date and DateTime in input and in queries.

A Date is `YYYY-MM-DD`. A DateTime is that day, alone (midnight) or with `T` or a blank and a time
of day: `HH`, `HH:MM`, `HHMMSS` or `HH:MM:SS` with any number of decimals, then nothing (UTC), `Z`
or an offset. This is the grammar of Arrow's own text casts, which the fast path of loading
uses, widened by longer fractions; the two must stay in step (a property test compares them).

Years run from 1 to 9999: what ISO text and Python can both express, so what is loaded can always be
exported, printed and compared.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

_EPOCH = date(1970, 1, 1).toordinal()
_EPOCH_INSTANT = datetime(1970, 1, 1, tzinfo=UTC)
DAY_MIN = date.min.toordinal() - _EPOCH
DAY_MAX = date.max.toordinal() - _EPOCH
MS_PER_DAY = 86_400_000
MS_MIN = DAY_MIN * MS_PER_DAY
MS_MAX = (DAY_MAX + 1) * MS_PER_DAY - 1

_DAY = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_TIME = r"([0-9]{2})(?:([0-9]{2})([0-9]{2})|(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?)?)"
_ZONE = r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
_DATE = re.compile(_DAY)
_DATETIME = re.compile(f"{_DAY}(?:[T ]{_TIME}{_ZONE})?")


def parse_day(text: str) -> int | None:
    """Days since 1970-01-01, or None when the text is not a day of the calendar."""
    match = _DATE.fullmatch(text)
    return None if match is None else _days(*match.groups())


def parse_instant(text: str) -> int | None:
    """Milliseconds since 1970-01-01T00:00:00Z, or None when the text is not an exact one."""
    match = _DATETIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute_2, second_2, minute, second, fraction, zone = match.groups()
    days = _days(year, month, day)
    h, m, s = int(hour or 0), int(minute or minute_2 or 0), int(second or second_2 or 0)
    offset_m = _offset_minutes(zone)
    if days is None or offset_m is None or h > 23 or m > 59 or s > 59:
        return None
    if fraction and fraction[3:].strip("0"):
        return None
    ms = int((fraction or "")[:3].ljust(3, "0"))
    total = days * MS_PER_DAY + ((h * 60 + m - offset_m) * 60 + s) * 1000 + ms
    return total if MS_MIN <= total <= MS_MAX else None


def day_number(value: date) -> int:
    """Days since 1970-01-01."""
    return value.toordinal() - _EPOCH


def instant_ms(value: datetime) -> int | None:
    """Milliseconds since the epoch, naive meaning UTC; None when finer than a millisecond."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    whole, rest = divmod(aware - _EPOCH_INSTANT, timedelta(milliseconds=1))
    return whole if not rest and MS_MIN <= whole <= MS_MAX else None


def day_of(number: int) -> date:
    """The day so many days after 1970-01-01."""
    return date.fromordinal(number + _EPOCH)


def instant_of(ms: int) -> datetime:
    """The instant so many milliseconds after 1970-01-01T00:00:00Z, in UTC."""
    return _EPOCH_INSTANT + timedelta(milliseconds=ms)


def _days(year: str, month: str, day: str) -> int | None:
    try:
        return date(int(year), int(month), int(day)).toordinal() - _EPOCH
    except ValueError:
        return None


def _offset_minutes(zone: str | None) -> int | None:
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        return None
    return (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)
