"""Publication dates: as pages and records write them, and as days.

A date is read in a machine's form alone: year, month and day in this order, also in Chinese (`2024年3月5日`) or as
eight digits, and dates of e-mail and scripts (`Tue, 05 Mar 2024 08:00:00 GMT`). `03/05/2024` is read as no date, since
nobody can know which of the two is the month. The day is that of the time zone in which it was written.

A day is stored as its number from 1970 on (`day_of`), negative before, in 32 bits. Years outside of MIN_YEAR and
MAX_YEAR are what programs write for "none", as in 0001-01-01.
"""

import re
from datetime import date, timedelta
from email.utils import parsedate

MIN_YEAR, MAX_YEAR = 1600, 2199
"""No news is older than the first newspapers."""

_MAX_CHARS = 64
"""Of a date without white space; what a page writes there may have megabytes."""

_SEPARATED = re.compile(r"(\d{4}) ?[-/.年] ?(\d{1,2}) ?[-/.月] ?(\d{1,2})(?!\d)")
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:\d{4}|\d{6})?(?!\d)")
_EPOCH = date(1970, 1, 1)
_FIRST, _LAST = (date(MIN_YEAR, 1, 1) - _EPOCH).days, (date(MAX_YEAR, 12, 31) - _EPOCH).days


def iso_date(text: str) -> str | None:
    """Return a date as YYYY-MM-DD; None if `text` does not begin with one.

    >>> iso_date("2024年3月5日 08:00"), iso_date("Tue, 05 Mar 2024 08:00:00 GMT"), iso_date("03/05/2024")
    ('2024-03-05', '2024-03-05', None)
    """
    found = _date(text)
    return None if found is None else found.isoformat()


def day_of(written: object) -> int | None:
    """Return the number of a day from 1970 on; None if what was written, a text or Python's own date, is no date.

    >>> day_of("1970-01-03"), day_of("1969-12-31"), day_of("soon")
    (2, -1, None)
    """
    found = _date(str(written)) if isinstance(written, str | date) else None
    return None if found is None else (found - _EPOCH).days


def iso_of_day(day: int | None) -> str | None:
    """Return the day with this number as YYYY-MM-DD; None for None, and for a number that `day_of` never returns.

    >>> iso_of_day(2)
    '1970-01-03'
    """
    if day is None or not _FIRST <= day <= _LAST:
        return None
    return (_EPOCH + timedelta(day)).isoformat()


def _date(text: str) -> date | None:
    start = _start(text)
    match = _SEPARATED.match(start) or _COMPACT.match(start)
    try:
        found = parsedate(start) if match is None else match.groups()
        if found is None:
            return None
        year, month, day = map(int, found[:3])
        return date(year, month, day) if MIN_YEAR <= year <= MAX_YEAR else None
    except (ValueError, TypeError, IndexError, OverflowError):  # no such day, or what `parsedate` raises for no date
        return None


def _start(text: str) -> str:
    """Return what is looked at: the first characters with white space as one space, however much there is of it."""
    words = text.split(maxsplit=_MAX_CHARS // 2)
    return " ".join(word[:_MAX_CHARS] for word in words)[:_MAX_CHARS]
