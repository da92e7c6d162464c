"""The titles and bodies of pages folded, without headlines and repost markers at the edges of a body.

A batch of pages is folded in one compiled call, and a second one finds headlines and which bodies may begin or end with
repost markers; those are searched one by one. Pages that the tables cannot fold, or that may be in traditional Chinese,
are folded one by one, title and body together.

Remove what people and portals write around a text that they repost.

At the beginning: `转发:`, `RT @name:`, `//@name:`, `(转载)`, `【快讯】` and the like, also several in a row.
At the end: emoticons in brackets, `[赞][doge]`. In a short text these are a quarter of the letters, and two
posts of one sentence would not be the same. Inside a text nothing is removed: `[广州]` before a headline is
a place.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel_inline, long_kernel
from dedup_service.core.text.normalise import (
    FOLDED,
    PLANE,
    SIMPLIFIED,
    code_points,
    fold_exactly,
    folded_parts,
    simplified,
    without_headline,
)
from dedup_service.core.text.page_text import PageTexts

_LABELS = "转发|转载|转帖|转自|转|转发微博|快讯|最新|最新消息|头条|推荐|热点|分享|repost|rt"
_NAME = r"@[^:\n@]{1,30}"
_MARK = re.compile(
    rf"""\s*(?:
        [(\[【]\s*(?:{_LABELS})\s*[)\]】]:?             # (转), [转], 【快讯】
      | (?://|回复|via\b|转自|转发自?|rt\b)\s*{_NAME}:   # //@name:, rt @name:
      | {_NAME}:
      | (?:转发微博|转发|转载|转帖|转自|repost|rt)(?::|\s+)
      | 转:
    )\s*""",
    re.VERBOSE,
)
STARTS_OF_MARKS, LAST_OF_MARKS = "([【/回v转r@", "]"
"""With what a marker at the beginning begins, but for white space, and with what emoticons at the end end."""

_EMOTICONS = re.compile(r"(?:\[(?:[\u4e00-\u9fff]{1,6}|[a-z]{3,6})\]\s*)+$")
_EMOTICON_CHARS = 200
"""Characters at the end of a text among which emoticons are searched."""


def without_repost_marks(folded: str) -> str:
    """Return a folded text without repost markers; a text of nothing but markers is returned unchanged.

    >>> without_repost_marks("转发微博: rt @晨读笔记: 大桥今天通车[赞][赞]")
    '大桥今天通车'
    """
    start, end = between_repost_marks(folded)
    return folded[start:end]


def between_repost_marks(folded: str) -> tuple[int, int]:
    """Return where the text begins and ends that `without_repost_marks` returns."""
    start = 0
    while mark := _MARK.match(folded, start):
        start = mark.end()
    end = len(folded)
    if folded.endswith(LAST_OF_MARKS) and (emoticons := _EMOTICONS.search(folded, max(start, end - _EMOTICON_CHARS))):
        end = emoticons.start()
    return (start, end) if start < end else (0, len(folded))


_BETWEEN = "\0"
"""A line between title and body that folding leaves alone."""

_LINE_FEED, _SPACE = 10, 32
_FIRST = np.array([*map(ord, STARTS_OF_MARKS)], np.uint32)
_LAST = ord(LAST_OF_MARKS)

_Points = npt.NDArray[np.uint32]


def folded_pages(pages: Sequence[tuple[str, str]]) -> tuple[PageTexts, PageTexts]:
    """Return pages (title, body) folded, and folded without loss (`normalise.fold_exactly`); mostly they are the same.

    Bodies are without a headline that repeats the title, and without repost markers.
    """
    points, ends, kinds = folded_parts([part for page in pages for part in page])
    known = np.bitwise_and.reduce(kinds.reshape(-1, 2), axis=1)
    places, doubtful = page_places(points, ends, _alphanumeric())
    exact = places
    more, size = [points], len(points)
    for number in np.flatnonzero(doubtful | (known != FOLDED | SIMPLIFIED)).tolist():
        bounds = 0 if number == 0 else ends[2 * number - 1], ends[2 * number], ends[2 * number + 1]
        title, body = (points[start:end] for start, end in pairwise(bounds))
        if known[number] == FOLDED | SIMPLIFIED:
            start, stop = _bare(_text(title), _text(body))
            places[number, :2] = exact[number, :2] = bounds[1] + start, bounds[1] + stop
            continue
        if known[number] & FOLDED and not any(_BETWEEN in part for part in pages[number]):
            once = exactly = _bare_points(*_parted(simplified(f"{_text(title)}\n{_BETWEEN}\n{_text(body)}")))
        else:
            once, exactly = _folded_alone(*pages[number])
        if exactly is not once and exact is places:
            exact = places.copy()
        for where, parts in ((exact, exactly), (places, once)):
            sizes = [len(part) for part in parts]
            where[number] = size, size + sizes[0], size + sizes[0], size + sum(sizes)
            more += parts
            size += sum(sizes)
            if exactly is once:
                places[number] = exact[number]
                break
    source = np.concatenate(more) if len(more) > 1 else points
    texts = PageTexts.at_places(source, places)
    return texts, PageTexts.at_places(source, exact) if exact is not places else texts


@long_kernel
def page_places(
    points: _Points, ends: npt.NDArray[np.int64], alphanumeric: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return where the body of each of n folded pages begins and ends, and its title: int64[n, 4].

    Bodies are without headlines. With it, which pages may have repost markers, or a headline that only Python can tell:
    bool[n], of these the whole body is given. ends: of titles and bodies in points, int64[2 n]. alphanumeric:
    `_alphanumeric()`.
    """
    places, doubtful = np.empty((len(ends) // 2, 4), np.int64), np.zeros(len(ends) // 2, np.bool_)
    title = 0
    for page in range(len(places)):
        body, end = ends[2 * page], ends[2 * page + 1]
        start = headline_end(points[title:body], points[body:end], alphanumeric)
        if start < 0 or may_have_marks(points[body + start : end]):
            start, doubtful[page] = 0, True
        places[page, 0], places[page, 1], places[page, 2], places[page, 3] = body + start, end, title, body
        title = end
    return places, doubtful


@kernel_inline
def headline_end(title: _Points, body: _Points, alphanumeric: npt.NDArray[np.bool_]) -> int:
    """Return where a body begins after its headline, as `without_headline` says, 0 without one, -1 if it is not known.

    It is not known of letters above the first plane.
    """
    line = 0
    while line < len(body) and line <= 2 * len(title) and body[line] != np.uint32(_LINE_FEED):
        line += 1
    if line + 1 >= len(body) or line > 2 * len(title):
        return 0
    at, count = 0, 0
    for i in range(line):
        if body[i] >= np.uint32(PLANE):
            return -1
        if not alphanumeric[body[i]]:
            continue
        while at < len(title) and title[at] < np.uint32(PLANE) and not alphanumeric[title[at]]:
            at += 1
        if at == len(title):
            return 0
        if title[at] >= np.uint32(PLANE):
            return -1
        if title[at] != body[i]:
            return 0
        at += 1
        count += 1
    return line + 1 if count else 0


@kernel_inline
def may_have_marks(body: _Points) -> bool:
    """Whether `between_repost_marks` may find something in a body."""
    if len(body) == 0:
        return False
    found = body[0] <= np.uint32(_SPACE) or body[len(body) - 1] == np.uint32(_LAST)
    for first in _FIRST:
        found |= body[0] == first
    return bool(found)


@cache
def _alphanumeric() -> npt.NDArray[np.bool_]:
    """Return bool[65536]: for which characters of the first plane `str.isalnum` is true."""
    return np.fromiter((chr(code).isalnum() for code in range(PLANE)), np.bool_, PLANE)


def _text(points: _Points) -> str:
    return str(points.data, "utf-32-le", "surrogatepass")


def _folded_alone(title: str, body: str) -> tuple[list[_Points], list[_Points]]:
    """Return body and title of one page folded, and folded without loss; mostly this is one list."""
    if _BETWEEN in title or _BETWEEN in body:
        (title, exact_title), (body, exact_body) = fold_exactly(title), fold_exactly(body)
        return _bare_points(title, body), _bare_points(exact_title, exact_body)
    folded, exact = fold_exactly(f"{title}\n{_BETWEEN}\n{body}")
    parts = _bare_points(*_parted(folded))
    return parts, parts if exact is folded else _bare_points(*_parted(exact))


def _parted(folded: str) -> tuple[str, str]:
    title, _, body = folded.partition(_BETWEEN)
    return title.strip("\n"), body.strip("\n")


def _bare_points(title: str, body: str) -> list[_Points]:
    start, stop = _bare(title, body)
    return [code_points(body[start:stop]), code_points(title)]


def _bare(title: str, body: str) -> tuple[int, int]:
    """Return where a folded body begins and ends without headline and repost markers."""
    rest = without_headline(body, title)
    cut = len(body) - len(rest)
    start, stop = between_repost_marks(rest)
    return cut + start, cut + stop
