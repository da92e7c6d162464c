"""Dates as pages and records write them."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dedup_service.core.dates import MAX_YEAR, MIN_YEAR, day_of, iso_date, iso_of_day

DAYS = st.dates(date(MIN_YEAR, 1, 1), date(MAX_YEAR, 12, 31))


@pytest.mark.parametrize(
    "written",
    [
        "2024-03-05",
        " 2024-3-5 ",
        "2024-03-05T23:30:00-08:00",
        "2024/03/05 08:00",
        "2024.03.05",
        "2024年3月5日",
        "2024年03月05日 08:00",
        "2024 年 3 月 5 日",
        "２０２４年３月５日",
        "20240305",
        "20240305T080000Z",
        "202403050800",
        "20240305080000",
        "Tue, 05 Mar 2024 08:00:00 GMT",
        "Tue Mar 05 2024 08:00:00 GMT+0000",
        "Tue Mar 05 08:00:00 CST 2024",
        " " * 10**6 + "2024-03-05",
        "\n\t\u3000" * 100 + "20240305\n" + " " * 10**6,
        "2024" + " " * 100 + "年\n\n3月" + "\t" * 100 + "5日",
        "Tue," + " " * 10**6 + "05\r\n" + " " * 100 + "Mar 2024 08:00:00 GMT",
    ],
    ids=lambda written: " ".join(written.split())[:30] + f" of {len(written)}",
)
def test_forms_of_a_date(written: str) -> None:
    """Year, month and day in this order, and dates as e-mail and scripts write them; the day is the one written."""
    assert iso_date(written) == "2024-03-05"


@pytest.mark.parametrize(
    "written",
    [
        "",
        "soon",
        "03/05/2024",
        "5 March",
        "2024",
        "2024-03",
        "2024-02-30",
        "2024-13-05",
        "2024-03-055",
        "0000-00-00",
        "0001-01-01T00:00:00",
        "9999-12-31",
        "99999-03-05",
        "-2024-03-05",
        "5 Mar 99999 08:00",
        "1709625600",
        "1709625600000",
        "2024-03-\x00",
        "\ud800",
        "9" * 10**6,
        " " * 10**6,
        "2024" + " " * 10**6 + "-03",
        "2024-03-" * 10**5,
        "Mar " * 10**5,
        " 2024 -" * 10**5,
        "2024-03-" + " x" * 10**5,
    ],
    ids=lambda written: repr(written[:20]),
)
def test_what_is_no_date(written: str) -> None:
    """Nor are times in seconds, years that no page was published in, and what stands for "none" in programs."""
    assert iso_date(written) is None
    assert day_of(written) is None


@given(
    st.lists(st.sampled_from(["2024", "03", "05", "年", "-", "/", "Mar", "Tue,", "08:00", "x"]), max_size=8),
    st.text(" \t\n\u3000\xa0", min_size=1, max_size=80),
)
def test_white_space_counts_as_one_space_however_much_there_is(words: list[str], blanks: str) -> None:
    """It may come before a date or within one: pages are laid out by programs."""
    assert iso_date(blanks + blanks.join(words)) == iso_date(" ".join(words))


@given(DAYS)
def test_a_day_comes_back_from_its_number(day: date) -> None:
    """Each fits into 32 bits."""
    number = day_of(day.isoformat())
    assert number == (day - date(1970, 1, 1)).days
    assert iso_of_day(number) == day.isoformat()


@given(st.text() | st.from_regex(r"\d{1,6}[-/.年]?\d{1,3}[-/.月]?\d{1,3}"))
@example("0:0:0 1 2 3")
def test_any_text_is_a_date_or_none(written: str) -> None:
    """Nothing raises, and every date that is read is stored as it is shown."""
    assert iso_of_day(day_of(written)) == iso_date(written)


@pytest.mark.parametrize("number", [None, -(1 << 31), 1 << 31, 1 << 62, 10**7])
def test_numbers_of_no_day(number: int | None) -> None:
    """A stored number that no day has is no date."""
    assert iso_of_day(number) is None


def test_what_a_caller_gives_instead_of_a_text() -> None:
    """Python's own dates are read; anything else is no date."""
    assert day_of(date(1970, 1, 2)) == day_of(datetime(1970, 1, 2, 23, tzinfo=UTC)) == 1
    assert [day_of(value) for value in (20240305, 1.5, None, [], b"2024-03-05")] == [None] * 5
