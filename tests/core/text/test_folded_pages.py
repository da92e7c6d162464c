"""Tests for pages folded together, against each folded alone."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.text.folded_pages import folded_pages
from dedup_service.core.text.normalise import fold, fold_exactly, without_headline
from dedup_service.core.text.page_text import PageTexts
from dedup_service.core.text.repost_markers import without_repost_marks

WORDS = ["大桥", "通车", "今天", "發", "頭髮", "ab", " ", "\n", "——", "!", "𠮷", "😀", "m²", "é", "e\u0301", "\0", "ไท"]
MARKS = [
    "转发微博: ",
    "(转)",
    "[转]",
    "【快讯】",
    "//@名:",
    "rt @名:",
    "回复@名:",
    "via @名:",
    "@名:",
    "转:",
    "[赞]",
    "[doge]",
]
PIECES = st.sampled_from(WORDS) | st.sampled_from(MARKS)
TEXTS = st.lists(PIECES, max_size=8).map("".join)


@st.composite
def pages(draw: st.DrawFn) -> tuple[str, str]:
    """Return a title and a body, which may begin with the title or a part of it."""
    title, body = draw(TEXTS), draw(TEXTS)
    headline = title[: draw(st.integers(0, len(title)))]
    return title, draw(st.sampled_from([body, f"{headline}\n{body}", f"{headline} \n\n{body}"]))


def texts_of(folded: PageTexts) -> list[tuple[str, str]]:
    """Return the titles and bodies."""
    return [folded.page(number)[:2] for number in range(len(folded))]


@given(st.lists(pages(), max_size=5))
def test_pages_are_folded_together_as_alone(several: list[tuple[str, str]]) -> None:
    """Without headlines and repost markers, whichever pages the tables cannot fold, and without loss."""
    folded, exact = folded_pages(several)
    bodies = [without_headline(fold(body), fold(title)) for title, body in several]
    alone = zip(several, map(without_repost_marks, bodies), strict=True)
    assert texts_of(folded) == [(fold(title), body) for (title, _), body in alone]
    titles = [fold_exactly(title)[1] for title, _ in several]
    bodies = [without_headline(fold_exactly(body)[1], title) for (_, body), title in zip(several, titles, strict=True)]
    assert texts_of(exact) == list(zip(titles, map(without_repost_marks, bodies), strict=True))
