"""Where a text is a host's own: its common sentences, as places in the text as it was extracted.

Sentences are found in the folded text, in which characters may have become others, several, or none. Letters tell
which is which: a line and its folded form have the same letters in the same order, and each character brings as
many as it has when it is folded alone. In a line where the sums differ (marks that join with the letter before
them), all sentences have the place of the whole line.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

from dedup_service._native import Entry, HostText, fold, sentences_in_order
from dedup_service.core.evidence.packed import Evidence

Spans = tuple[tuple[int, int], ...]


def common_of_pair(host_text: HostText, one: Entry, other: Entry) -> list[int]:
    """Return the values of sentences of two pages that are text of either page's host, ascending."""
    ours, theirs = (Evidence(entry.evidence).sentence_values for entry in (one, other))
    return host_text.common_to_pair(one.host, ours, other.host, theirs)


def host_spans(text: str, are_common: Callable[[Sequence[int]], Sequence[bool]]) -> Spans:
    """Return where `text` is a host's own.

    Args:
        text: Main text as extracted, not folded.
        are_common: Says of each of some sentences, by their values, whether it is common.

    Returns:
        Places (start, stop) of common sentences, ascending and disjoint, each with the marks up to the next letter of
        its line. Sentences that follow each other are one place.
    """
    sentences = sentence_places(text)
    merged: list[tuple[int, int]] = []
    for (_, start, stop), is_common in zip(sentences, are_common([value for value, *_ in sentences]), strict=True):
        if is_common and merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        elif is_common:
            merged.append((start, stop))
    return tuple(merged)


def sentence_places(text: str) -> list[tuple[int, int, int]]:
    """Return each sentence of `text`: its value, and where it starts and stops."""
    found: list[tuple[int, int, int]] = []
    line_start = 0
    for line in text.split("\n"):
        found += ((value, line_start + start, line_start + stop) for value, start, stop in _sentences_of_line(line))
        line_start += len(line) + 1
    return found


def _sentences_of_line(line: str) -> Iterator[tuple[int, int, int]]:
    sentences, letters = sentences_in_order(fold(line))
    ends = list(accumulate(map(_letters_alone, line)))
    is_known = bool(ends) and ends[-1] == letters
    for value, first, end in sentences:
        yield (value, bisect_right(ends, first), bisect_right(ends, end)) if is_known else (value, 0, len(line))


@lru_cache(maxsize=1 << 14)
def _letters_alone(character: str) -> int:
    """Return how many letters a character has once it is folded."""
    return sentences_in_order(fold(character))[1]
