"""The titles and bodies of pages folded, without headlines and repost markers at the edges of a body.

A batch of pages is folded in one compiled call. Pages that the tables cannot fold, or that may be in traditional
Chinese, are folded one by one, title and body together.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dedup_service.core.text.normalise import (
    FOLDED,
    SIMPLIFIED,
    code_points,
    fold_exactly,
    folded_parts,
    without_headline,
)
from dedup_service.core.text.page_text import PageTexts
from dedup_service.core.text.repost_markers import between_repost_marks

__all__ = ["folded_pages"]

_BETWEEN = "\0"
"""A line between title and body that folding leaves alone."""

_Parts = list[npt.NDArray[np.uint32]]


def folded_pages(pages: Sequence[tuple[str, str]]) -> tuple[PageTexts, PageTexts]:
    """Return pages (title, body) folded, and folded without loss (`normalise.fold_exactly`); mostly they are the same.

    Bodies are without a headline that repeats the title, and without repost markers.
    """
    points, ends, kinds = folded_parts([part for page in pages for part in page])
    places, simple = [0, *ends.tolist()], (kinds & (FOLDED | SIMPLIFIED) == FOLDED | SIMPLIFIED).tolist()
    text = str(points.data, "utf-32-le", "surrogatepass")
    folded, exact, differ = _Parts(), _Parts(), False
    for number, (title, body) in enumerate(pages):
        if not (simple[2 * number] and simple[2 * number + 1]):
            once, exactly = _folded_alone(title, body)
            differ = differ or exactly is not once
            folded += once
            exact += exactly
            continue
        begin, middle, end = places[2 * number : 2 * number + 3]
        start, stop = _bare(text[begin:middle], text[middle:end])
        parts = [points[middle + start : middle + stop], points[begin:middle]]
        folded += parts
        exact += parts
    texts = PageTexts.joined(folded)
    return texts, PageTexts.joined(exact) if differ else texts


def _folded_alone(title: str, body: str) -> tuple[_Parts, _Parts]:
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


def _bare_points(title: str, body: str) -> _Parts:
    start, stop = _bare(title, body)
    return [code_points(body[start:stop]), code_points(title)]


def _bare(title: str, body: str) -> tuple[int, int]:
    """Return where a folded body begins and ends without headline and repost markers."""
    rest = without_headline(body, title)
    cut = len(body) - len(rest)
    start, stop = between_repost_marks(rest)
    return cut + start, cut + stop
