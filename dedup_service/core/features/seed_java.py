"""The seed's Java program, reproduced: white-space words, weight 1 each, its hash, a bit at sum ≥ 0.

Text is taken as it is: no folding, no stop words; U+3000 does not separate. No words give all ones.
Source: SimHash introduction with Java code, section 4. Its `subByDistance` loses a block whenever the
top bit is 0 and is not reproduced.
"""

import re

import numpy as np

from dedup_service.core.features.hashing import java_hash
from dedup_service.core.features.simhash import simhash

__all__ = ["java_words", "seed_java"]

_SEPARATORS = re.compile("[ \t\n\r\f]+")


def java_words(text: str) -> list[str]:
    """Split like Java's StringTokenizer with its five separators."""
    return [word for word in _SEPARATORS.split(text) if word]


def seed_java(text: str, *, bits: int = 64) -> int:
    """Return the program's fingerprint of `text`.

    >>> seed_java("the cat sat on the mat")
    18067315166123372031
    """
    words = java_words(text)
    value = simhash(
        [java_hash(word, bits) for word in words], np.ones(len(words), dtype=np.int64), bits=bits, zero_is_one=True
    )
    assert value is not None  # zero_is_one gives a fingerprint for no words as well
    return value
