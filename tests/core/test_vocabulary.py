"""The vocabulary's arrays, against dictionaries and loops."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core import vocabulary
from dedup_service.core.vocabulary import FEATURE, MARKED, Facts, Vocabulary

SEGMENTS = st.lists(st.text(alphabet="ab中文𠮷", min_size=1, max_size=3), max_size=40)


def hash_of(word: str) -> int:
    """128 bits that differ by word."""
    return (int.from_bytes(word.encode().ljust(12, b"."), "big") << 30) % (1 << 128)


def kind_of(word: str) -> int:
    """Features begin with a, marked ones end with 文."""
    return FEATURE * word.startswith("a") | MARKED * word.endswith("文")


def look_up(words: Sequence[str]) -> Facts:
    """Facts that differ by word."""
    return Facts([hash_of(w) for w in words], np.array([len(w) / 2 for w in words]), [kind_of(w) for w in words])


def numbers(words: Sequence[str]) -> Facts:
    """Facts of words that end with a number, which is their hash."""
    return Facts([int(word.removeprefix("word")) for word in words], np.zeros(len(words)), [0] * len(words))


@given(st.lists(SEGMENTS, max_size=6))
def test_every_word_has_the_facts_it_was_looked_up_with(pages: list[list[str]]) -> None:
    """However many words were met before, each segment's facts are what the function says."""
    known = Vocabulary(look_up)
    for segments in pages:
        slots = known.slots(segments)
        low, high, idf = known.facts(slots)
        hashes = [a | b << 64 for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        assert hashes == [hash_of(segment) for segment in segments]
        assert idf.tolist() == [len(segment) / 2 for segment in segments]
        assert known.kinds(slots).tolist() == [kind_of(segment) for segment in segments]


@given(SEGMENTS, SEGMENTS, st.data())
def test_distinct_features_are_counted_like_a_counter_does(
    body: list[str], title: list[str], data: st.DataObject
) -> None:
    """Counts are of the body, 1 for the title alone; title and marked sentences are told for each word."""
    segments = body + title
    marked = data.draw(st.lists(st.booleans(), min_size=len(segments), max_size=len(segments)))
    known = Vocabulary(look_up)
    for _ in range(2):  # the scratch space is clean again
        found = known.distinct(known.slots(segments), len(body), np.array(marked, dtype=np.bool_))
    words = [segments[at] for at in found.first.tolist()]
    assert words == [word for word in dict.fromkeys(segments) if word.startswith("a")]
    counts = Counter(body)
    assert found.counts.tolist() == [counts[word] or 1 for word in words]
    assert found.in_title.tolist() == [word in title for word in words]
    in_marked = {segment for segment, is_marked in zip(segments, marked, strict=True) if is_marked}
    assert found.marked.tolist() == [word in in_marked or word.endswith("文") for word in words]


def test_a_word_is_looked_up_once() -> None:
    """What was worked out is remembered, over many pages and while the arrays grow."""
    asked: Counter[str] = Counter()

    def counting(words: Sequence[str]) -> Facts:
        asked.update(words)
        return numbers(words)

    known = Vocabulary(counting)
    words = [f"word{number}" for number in range(20_000)]
    for start in range(0, 20_000, 2_500):
        known.slots(words[: start + 2_500])
    assert set(asked.values()) == {1}
    assert known.facts(known.slots(words))[0].tolist() == list(range(20_000))


def test_too_many_words_are_forgotten_and_learned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past its limit the vocabulary begins anew, also within a page larger than the limit."""
    monkeypatch.setattr(vocabulary, "MOST_KNOWN", 10)
    known = Vocabulary(numbers)
    for start in (0, 8, 16, 3):
        words = [str(number) for number in range(start, start + 30)]
        assert known.facts(known.slots(words))[0].tolist() == list(range(start, start + 30))
