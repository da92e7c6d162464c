"""Where a text is a host's own: its common sentences, as places in the text as it was extracted.

Sentences are found in the folded text, in which characters may have become others, several, or none. Letters tell
which is which: a line and its folded form have the same letters in the same order, and each character brings as
many as it has when it is folded alone. In a line where the sums differ (marks that join with the letter before
them), all sentences have the place of the whole line.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dedup_service._native import Entry, HostText
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.sentences import ENDS, sentences_in_order
from dedup_service.core.text.normalise import code_points, fold

Values = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]
Spans = tuple[tuple[int, int], ...]


def common_of_pair(host_text: HostText, one: Entry, other: Entry) -> Values:
    """Return the sentences of two pages that are text of either page's host: values uint32[n], ascending."""
    ours, theirs = (Evidence(entry.evidence).sentence_values for entry in (one, other))
    return np.array(host_text.common_to_pair(one.host, ours, other.host, theirs), np.uint32)


def host_spans(text: str, is_common: Callable[[Values], npt.NDArray[np.bool_]]) -> Spans:
    """Return where `text` is a host's own.

    Args:
        text: Main text as extracted, not folded.
        is_common: Says which of the sentence values uint32[n] are common, as bool[n].

    Returns:
        Places (start, stop) of common sentences, ascending and disjoint, each with the marks up to the next letter of
        its line. Sentences that follow each other are one place.
    """
    values, places = sentence_places(text)
    merged: list[tuple[int, int]] = []
    for start, stop in places[is_common(values)].tolist():
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return tuple(merged)


def sentence_places(text: str) -> tuple[Values, Places]:
    """Return the value of each sentence of `text`, uint32[n], and where it is: start and stop, int64[n, 2]."""
    found: list[tuple[Values, Places]] = []
    start = 0
    for line in text.split("\n"):
        values, places = _sentences_of_line(line)
        found.append((values, places + start))
        start += len(line) + 1
    return np.concatenate([values for values, _ in found]), np.concatenate([places for _, places in found])


def _sentences_of_line(line: str) -> tuple[Values, Places]:
    values, letters, count = sentences_in_order(code_points(fold(line)), ENDS)
    ends = np.cumsum([_letters_alone(character) for character in line])
    if len(ends) and ends[-1] != count:
        return values, np.tile((0, len(line)), (len(values), 1))
    return values, np.searchsorted(ends, letters, side="right")


@lru_cache(maxsize=1 << 14)
def _letters_alone(character: str) -> int:
    """Return how many letters a character has once it is folded."""
    return int(sentences_in_order(code_points(fold(character)), ENDS)[2])
