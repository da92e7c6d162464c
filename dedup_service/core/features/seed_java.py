"""The scheme `seed-java`: the seed's Java program, reproduced.

Words are separated by ASCII white space alone and weigh 1 for each occurrence; a bit is set where its sum is
≥ 0, so that a text without words has all bits set. The text is taken as extracted: no folding, no stop
words, no title.
Source: SimHash introduction with Java code, section 4. The program's `subByDistance` loses a block whenever
the top bit is 0 and is not reproduced.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features.hashing import java_hash
from dedup_service.core.features.simhash import simhash
from dedup_service.core.features.words import Feature, WordTable

_SEPARATORS = re.compile("[ \t\n\r\f]+")


@dataclass(frozen=True, slots=True)
class SeedJavaScheme:
    """The scheme that reproduces the seed program: it has no factors, and nothing to set."""

    name: ClassVar[str] = "seed-java"
    hash: ClassVar[str] = "java"
    is_usual: ClassVar[bool] = False
    pos: ClassVar[bool] = False

    def fingerprint(self, text: str, count_words: Callable[[], WordTable], *, bits: int) -> int | None:  # noqa: ARG002
        """Return the program's fingerprint of `text`; the words are its own, so none are counted."""
        return seed_java(text, bits=bits)

    def features(self, text: str, count_words: Callable[[], WordTable], limit: int) -> list[Feature]:  # noqa: ARG002
        """Return the `limit` most frequent words of `text`."""
        counts = Counter(java_words(text)).most_common(limit)
        return [Feature(word=word, weight=count, count=count, idf=1.0, factors={}) for word, count in counts]

    def with_settings(self, settings: Iterable[str]) -> Self:
        """Return the scheme itself. Raises ConfigurationError for any setting."""
        return self._unchanged(settings)

    def without(self, factors: Iterable[str]) -> Self:
        """Return the scheme itself. Raises ConfigurationError for any factor."""
        return self._unchanged(factors)

    def to_dict(self) -> dict[str, Any]:
        """Return the scheme as a space stores it.

        All values but the name are fields of `WeightedScheme`: they are part of every `seed-java` space
        there is.
        """
        return {
            "name": self.name,
            "tf": "raw",
            "idf": False,
            "levels": False,
            "title": 1.0,
            "marker": 1.0,
            "marker_by": "sentence",
            "pos": self.pos,
            "length": "",
            "combine": "product",
            "with_title": False,
            "least_chars": 1,
            "hash": self.hash,
        }

    def _unchanged(self, changes: Iterable[str]) -> Self:
        for change in changes:
            raise ConfigurationError(
                f"seed-java reproduces the seed's program and has no {change!r} to change; choose another scheme"
            )
        return self


def java_words(text: str) -> list[str]:
    """Return the words of `text`, split like Java's StringTokenizer with its five separators."""
    return [word for word in _SEPARATORS.split(text) if word]


def seed_java(text: str, *, bits: int = 64) -> int:
    """Return the program's fingerprint of `text`.

    >>> seed_java("the cat sat on the mat")
    18067315166123372031
    """
    words = java_words(text)
    hashes = [java_hash(word, bits) for word in words]
    value = simhash(hashes, [1] * len(words), bits=bits, zero_is_one=True)
    assert value is not None  # zero_is_one gives a fingerprint for no words as well
    return value
