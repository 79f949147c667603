"""Moments as people say them: `yesterday`, `2 weeks ago`, `monday`, `12h`.

    words, now -> [spoken] -> microseconds since 1970

A day is its first moment in UTC, as it is where days are written as dates. Months have 30 days here
and years 365: whatever must be exact is written as a date.
"""

from __future__ import annotations

import re

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_UNITS = {
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3_600 * _SECOND,
    "day": _DAY,
    "week": 7 * _DAY,
    "month": 30 * _DAY,
    "year": 365 * _DAY,
}
_SHORT = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week"}
_WEEKDAYS = ("thursday", "friday", "saturday", "sunday", "monday", "tuesday", "wednesday")
"""From the first day of 1970 on."""
_NUMBERS = {"a": 1, "an": 1, "one": 1}
_AGO = re.compile(rf"([0-9]{{1,6}}|a|an|one) ?({'|'.join(_UNITS)})s?( ago)?")
_SPAN = re.compile(r"([0-9]{1,6})([smhdw])( ago)?")
EXAMPLES = "yesterday, monday, '2 weeks ago' or 12h"


def spoken_moment(text: str, now_us: int) -> int | None:
    """The moment that the words mean; None if they mean none."""
    # `2.weeks.ago` needs no quotes in a shell.
    words = re.sub(r"(?<=\w)[\s._-]+(?=\w)", " ", text.strip()).lower()
    today = now_us - now_us % _DAY
    if words in ("now", "today", "yesterday"):
        return {"now": now_us, "today": today, "yesterday": today - _DAY}[words]
    weekday = words.removeprefix("last ")
    if weekday in _WEEKDAYS:
        past = (today // _DAY - _WEEKDAYS.index(weekday)) % 7
        return today - (past or 7) * _DAY
    if found := _AGO.fullmatch(words):
        count = _NUMBERS.get(found[1]) or int(found[1])
        return now_us - count * _UNITS[found[2]]
    if found := _SPAN.fullmatch(words):
        return now_us - int(found[1]) * _UNITS[_SHORT[found[2]]]
    return None
