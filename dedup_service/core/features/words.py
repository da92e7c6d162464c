"""The words of one page, as the crate counts them, with their part of speech if a scheme weighs it.

The words are the distinct words of body and title, without stop words, modal particles and punctuation.
Counts are occurrences in the body; a word of the title alone has a count of 1. A word is marked if a
sentence of the body contains both the word and a marker (`native/src/features/words.rs`).

The part of speech of a Chinese word is the one that jieba's dictionary gives it (ICTCLAS style), `m` for an unknown
number and `eng` for other unknown words of ASCII letters and digits.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dedup_service._native import Word, fold

UNKNOWN = "x"
"""The part of speech of a word that the dictionary does not know."""

_NUMBER, _LATIN, _MODAL_PARTICLE = "m", "eng", "y"


@dataclass(frozen=True, slots=True)
class Feature:
    """A weighted word with the factors that made its weight."""

    word: str
    weight: float
    count: int
    idf: float
    factors: dict[str, float]


class WordTable(NamedTuple):
    """The n distinct words of a page, in order of first occurrence; tags: their parts of speech, if they are needed."""

    words: Sequence[Word]
    tags: Sequence[str] = ()


def tagged(words: Iterable[Word], tags: Mapping[str, str]) -> WordTable:
    """Return words with their parts of speech, without modal particles (吗, 呢). tags: word → part of speech."""
    pairs = [(word, _tag(word, tags)) for word in words]
    kept = [pair for pair in pairs if pair[1] != _MODAL_PARTICLE]
    return WordTable([word for word, _ in kept], [tag for _, tag in kept])


def _tag(word: Word, tags: Mapping[str, str]) -> str:
    if not word.is_chinese:
        return UNKNOWN
    if tag := tags.get(word.word):
        return tag
    known = [letter for letter in word.word if letter.isascii() and letter.isalnum()]
    if not known:
        return UNKNOWN
    return _NUMBER if all(letter.isdigit() for letter in known) else _LATIN


def parse_user_words(lines: Iterable[str]) -> dict[str, str]:
    """Return word → tag from lines in the format of jieba's user dictionaries: `word [frequency] [tag]`.

    Words are folded, as the texts are in which they are searched: `GPT模型`, `雲計算`, or one behind a byte order mark.
    """
    words: dict[str, str] = {}
    for line in lines:
        written, *rest = line.split()[:3] or [""]
        word = fold(written)
        if word:
            words[word] = next((field for field in rest if not field.isdigit()), UNKNOWN)
    return words
