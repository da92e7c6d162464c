"""Tests for the vocabulary, against dictionaries and loops."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.features import vocabulary
from dedup_service.core.features.plain_weights import UNCOUNTED, plain_simhash, plain_simhashes
from dedup_service.core.features.vocabulary import FEATURE, MARKED, MARKER, PHRASE, SENTENCE_END, Facts, Vocabulary
from dedup_service.core.text.segmentation.segments import PageSegments, Segments

WORDS = st.text(alphabet="ab中文𠮷", min_size=1, max_size=3) | st.sampled_from(["。", "bb", "bbb"])
SEGMENTS = st.lists(WORDS, max_size=40)
PHRASES = st.tuples(st.sampled_from(["bb", "bbb"]), WORDS).map(list) | st.just(["bb", "bbb", "bb"])


def hash_of(word: str) -> int:
    """Return 128 bits that differ by word."""
    return (int.from_bytes(word.encode().ljust(12, b"."), "big") << 30) % (1 << 128)


def kind_of(word: str) -> int:
    """Features begin with a, marked ones end with 文, 。 ends a sentence, b is a marker, bb and bbb begin one."""
    kinds = {"。": SENTENCE_END, "b": MARKER, "bb": PHRASE, "bbb": PHRASE}
    return FEATURE * word.startswith("a") | MARKED * word.endswith("文") | kinds.get(word, 0)


def look_up(words: Sequence[str]) -> Facts:
    """Return facts that differ by word."""
    return Facts([hash_of(w) for w in words], np.array([len(w) / 2 for w in words]), [kind_of(w) for w in words])


def numbers(words: Sequence[str]) -> Facts:
    """Return the facts of words that end with a number, which is their hash; all are features."""
    return Facts([int(word.removeprefix("word")) for word in words], np.zeros(len(words)), [FEATURE] * len(words))


def pages_of(*pages: tuple[list[str], list[str]]) -> PageSegments:
    """Return pages of a body and a title each."""
    return PageSegments.joined([Segments.of(part) for page in pages for part in page])


def hashes_of(known: Vocabulary, words: list[str]) -> list[int]:
    """Return the low half of the hash of each of these distinct words."""
    found = known.find(pages_of((words, []))).distinct()
    assert found["first"].tolist() == list(range(len(words)))
    hashes: list[int] = found["low"].tolist()
    return hashes


@given(st.lists(SEGMENTS, max_size=6))
def test_every_word_has_the_facts_it_was_looked_up_with(pages: list[list[str]]) -> None:
    """However many words were seen before, the facts of each feature are those that the function returns."""
    known = Vocabulary(look_up)
    for segments in pages:
        body = len(segments) // 2
        found = known.find(pages_of((segments[:body], segments[body:]))).distinct()
        words = [segments[at] for at in found["first"].tolist()]
        hashes = [a | b << 64 for a, b in zip(found["low"].tolist(), found["high"].tolist(), strict=True)]
        assert hashes == [hash_of(word) for word in words]
        assert found["idf"].tolist() == [len(word) / 2 for word in words]


@given(st.lists(st.tuples(SEGMENTS, SEGMENTS), max_size=4), st.lists(PHRASES, max_size=4))
def test_phrases_begin_where_their_segments_are(
    pages: list[tuple[list[str], list[str]]], phrases: list[list[str]]
) -> None:
    """Within a page, from its body into its title at most; the second time all words are known."""
    known = Vocabulary(look_up, phrases)
    begun, start = [], 0
    for body, title in pages:
        rests = [(body + title)[at:] for at in range(len(body))]
        begun += [start + at for at, rest in enumerate(rests) if any(rest[: len(p)] == p for p in phrases)]
        start += len(body + title)
    for _ in range(2):
        assert known.find(pages_of(*pages)).phrases.tolist() == begun


@given(SEGMENTS, SEGMENTS, st.data())
def test_distinct_features_are_counted_like_a_counter_does(
    body: list[str], title: list[str], data: st.DataObject
) -> None:
    """Counts are of the body, 1 for the title alone; words of titles and marked sentences are flagged."""
    segments = body + title
    phrases = sorted(data.draw(st.sets(st.integers(0, len(body) - 1)))) if body else []
    known = Vocabulary(look_up)
    for _ in range(2):  # the second time with used scratch space
        found = known.find(pages_of((body, title)))._replace(phrases=np.array(phrases, np.int64)).distinct()
    words = [segments[at] for at in found["first"].tolist()]
    assert words == [word for word in dict.fromkeys(segments) if word.startswith("a")]
    counts = Counter(body)
    assert found["counts"].tolist() == [counts[word] or 1 for word in words]
    assert found["in_title"].tolist() == [word in title for word in words]
    in_marked = in_marked_sentences(body, phrases)
    assert found["marked"].tolist() == [word in in_marked or word.endswith("文") for word in words]


def in_marked_sentences(body: list[str], phrases: list[int]) -> set[str]:
    """Return the words that are in a sentence with a marker, by plain loops."""
    found: set[str] = set()
    sentence: list[int] = []
    for at, word in enumerate([*body, "。"]):
        if word != "。":
            sentence.append(at)
            continue
        if any(body[place] == "b" or place in phrases for place in sentence) or at in phrases:
            found.update(body[place] for place in sentence)
        sentence = []
    return found


@given(
    st.lists(st.tuples(SEGMENTS, SEGMENTS), max_size=4),
    st.lists(PHRASES, max_size=3),
    st.sampled_from([(True, True), (False, False), (True, False)]),
    st.sampled_from([64, 128]),
)
def test_pages_are_weighed_together_as_alone(
    pages: list[tuple[list[str], list[str]]], phrases: list[list[str]], switches: tuple[bool, bool], bits: int
) -> None:
    """In one call, each page has the fingerprint of its own words, sentences and phrases."""
    known = Vocabulary(look_up, phrases)
    counts, halves = np.full(len(pages), UNCOUNTED), np.empty((len(pages), 2), np.uint64)
    known.find(pages_of(*pages[:2]))
    words = {word for body, title in pages for word in body + title}
    lacking = words - {word for body, title in pages[:2] for word in body + title}
    for _ in range(2):
        missing = plain_simhashes(*known.arrays(pages_of(*pages)), 5.0, 2.0, switches, bits, counts, halves)
        assert (missing > 0) == bool(lacking)
        known.find(pages_of(*pages))
        lacking = set()
    rows = [known.find(pages_of(page)).distinct() for page in pages]
    assert counts.tolist() == [len(of_page) for of_page in rows]
    assert halves.tolist() == [[*plain_simhash(of_page, 5.0, 2.0, switches, bits)] for of_page in rows]


def test_a_word_is_looked_up_once() -> None:
    """The facts of a word are cached over many pages, while the arrays grow."""
    asked: Counter[str] = Counter()

    def counting(words: Sequence[str]) -> Facts:
        asked.update(words)
        return numbers(words)

    known = Vocabulary(counting)
    words = [f"word{number}" for number in range(20_000)]
    for start in range(0, 20_000, 2_500):
        known.find(pages_of(([], words[: start + 2_500])))
    assert set(asked.values()) == {1}
    assert hashes_of(known, words) == list(range(20_000))


@pytest.mark.parametrize("letters", ["ab", "字符"])
def test_long_words_whose_polynomials_are_equal_are_two_words(letters: str) -> None:
    """Of the order of Thue and Morse; a word had the facts of the one that was seen first."""
    first, second = letters
    for _ in range(11):
        first, second = first + second, second + first
    asked: list[str] = []

    def asking(words: Sequence[str]) -> Facts:
        asked.extend(words)
        return Facts([len(asked)] * len(words), np.zeros(len(words)), [FEATURE] * len(words))

    known = Vocabulary(asking)
    for word in (first, second):
        hashes_of(known, [word])
    assert asked == [first, second]


def test_above_its_limit_the_vocabulary_starts_empty_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are looked up again, also for a page with more words than the limit."""
    monkeypatch.setattr(vocabulary, "MAX_KNOWN", 10)
    known = Vocabulary(numbers)
    for start in (0, 8, 16, 3):
        words = [str(number) for number in range(start, start + 30)]
        assert hashes_of(known, words) == list(range(start, start + 30))
