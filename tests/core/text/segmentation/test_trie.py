"""The double-array trie, against a dictionary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.kernels import kernel
from dedup_service.core.text.segmentation import trie
from dedup_service.core.text.segmentation.trie import FIRST_PLANE, NO_NODE, Trie, child, value_of

ALPHABET = "abcd中文字"
LETTERS = np.zeros(FIRST_PLANE, np.bool_)
LETTERS[[ord(letter) for letter in ALPHABET]] = True
WORDS = st.dictionaries(st.text(ALPHABET + "x𠮷", max_size=7), st.integers(0, 65_535), max_size=60)


@kernel
def walk(codes: np.ndarray, nodes: np.ndarray, points: np.ndarray) -> tuple[int, int]:
    """Return the node of a text, and its value."""
    node = np.int64(codes[points[0]]) if points[0] < FIRST_PLANE else np.int64(0)
    for at in range(1, len(points)):
        node = child(nodes, node, np.int64(codes[points[at]]) if points[at] < FIRST_PLANE else np.int64(0))
    return node, value_of(nodes, node)


def walked(made: Trie, text: str) -> tuple[int, int]:
    """Return the node of a text, and its value."""
    return walk(made.codes, made.nodes, np.array([ord(letter) for letter in text], np.int64))


@given(WORDS, st.lists(st.text(ALPHABET + "xy𠮷", min_size=1, max_size=8), max_size=30))
def test_the_trie_has_the_words_and_nothing_else(words: dict[str, int], others: list[str]) -> None:
    """A word of known letters has its value, any other text none; beginnings of words lead on."""
    made = Trie.of(words, LETTERS)
    known = {word: value for word, value in words.items() if word and set(word) <= set(ALPHABET)}
    for text in (*known, *others):
        assert walked(made, text)[1] == known.get(text, 0)
    for word in known:
        for end in range(1, len(word) + 1):
            assert walked(made, word[:end])[0] != NO_NODE


def test_too_many_words_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dictionary with more nodes than a node can name is refused with its size."""
    monkeypatch.setattr(trie, "_BASE", 64)
    with pytest.raises(ConfigurationError, match="a dictionary of 200 words has more nodes"):
        Trie.of({f"a{'bcd'[number % 3] * (number // 3)}": 1 for number in range(3, 203)}, LETTERS)
