"""Generated Chinese and English texts that share little with each other, faster than a broker takes them.

Words are drawn from a vocabulary, frequent ones more often, and put into sentences and paragraphs. The
Chinese words come from jieba's IDF table, so that a segmenter works as hard as on real pages. The English
words are random letters: words made of few syllables would give all texts the same n-grams. Invariant: the
same seed gives the same texts.
"""

import random
from functools import cache

from dedup_service.runtime.resources import jieba_idf

CHINESE_WORDS = 30_000
ENGLISH_WORDS = 8_000
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@cache
def chinese_vocabulary() -> tuple[str, ...]:
    """Return words of two to four characters, the most common ones first."""
    rows = (line.rsplit(" ", 1) for line in jieba_idf().splitlines())
    words = [(float(row[1]), row[0]) for row in rows if len(row) == 2 and 2 <= len(row[0]) <= 4 and _is_chinese(row[0])]
    return tuple(word for _, word in sorted(words)[:CHINESE_WORDS])


@cache
def english_vocabulary() -> tuple[str, ...]:
    """Return random words of three to nine letters."""
    rng = random.Random(1)
    drawn = ("".join(rng.choices(LETTERS, k=rng.randint(3, 9))) for _ in range(2 * ENGLISH_WORDS))
    return tuple(dict.fromkeys(drawn))[:ENGLISH_WORDS]


def _is_chinese(word: str) -> bool:
    return all("\u4e00" <= character <= "\u9fff" for character in word)


class Writer:
    """Generates texts. rng: source of randomness; may be shared with the caller."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def text(self, characters: int = 500) -> str:
        """Return a text of about this many characters: Chinese with probability 0.6, else English."""
        return self.chinese(characters) if self._rng.random() < 0.6 else self.english(characters)

    def chinese(self, characters: int) -> str:
        """Return Chinese paragraphs of about this many characters (3 bytes each)."""
        words = self._draw(chinese_vocabulary(), max(1, round(characters / 2.5)))
        return _punctuated(words, "", "，", "。")

    def english(self, characters: int) -> str:
        """Return English paragraphs of about this many characters."""
        words = self._draw(english_vocabulary(), max(1, characters // 8))
        return _punctuated(words, " ", ", ", ". ")

    def title(self) -> str:
        """Return a headline."""
        return "".join(self._draw(chinese_vocabulary(), 5))

    def _draw(self, vocabulary: tuple[str, ...], count: int) -> list[str]:
        # The square favours common words: half of all draws come from the first quarter of the vocabulary.
        chance, size = self._rng.random, len(vocabulary)
        return [vocabulary[int(size * chance() ** 2)] for _ in range(count)]


def _punctuated(words: list[str], space: str, comma: str, stop: str) -> str:
    """Join words to sentences of twenty with a comma in the middle, and to paragraphs of five sentences."""
    parts = []
    for start in range(0, len(words), 20):
        first, second = words[start : start + 9], words[start + 9 : start + 20]
        parts.append(space.join(first) + (comma + space.join(second) if second else "") + stop)
        if start % 100 == 80:
            parts.append("\n")
    return "".join(parts).strip()
