"""A space: everything that makes fingerprints comparable.

Two fingerprints can be compared only if text became features, weights and bits in the same way. The
`space_id` is a hash of all that decides this. An index, a state folder and a log belong to one space.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

import xxhash

from dedup_service.core.features.weighting_schemes import Scheme

SHINGLE = 3
PAIRS = "pairs"
ALGORITHM = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """How fingerprints are made.

    scheme: the weighting scheme of the `words` channel.
    segmenter: name and version of the Chinese segmenter, whose dictionary decides.
    characters: releases of Unicode and of OpenCC whose tables fold texts and find words.
    unspaced: how Japanese, Thai and other scripts without spaces are cut: `pairs` of characters, or ICU's
    version.
    idf, stop_words, markers, user_words: digests of the tables in use.
    bits: width of a fingerprint. shingle: characters per n-gram of the `body` channel.
    min_letters: a body with fewer letters is too short to judge.
    algorithm: incremented when a change of this project's code changes fingerprints, evidence or keys.
    """

    scheme: Scheme
    segmenter: str
    characters: str
    idf: str
    stop_words: str
    markers: str
    user_words: str
    unspaced: str = PAIRS
    bits: int = 64
    shingle: int = SHINGLE
    min_letters: int = 64
    algorithm: int = ALGORITHM

    @property
    def space_id(self) -> str:
        """Name of the scheme, `icu` if ICU cuts words, and 12 hexadecimal digits; safe in file names."""
        words = "" if self.unspaced == PAIRS else f"-{self.unspaced.split()[0].lower()}"
        return f"{self.scheme.name}{words}-{digest(json.dumps(self.to_dict(), sort_keys=True))[:12]}"

    def to_dict(self) -> dict[str, Any]:
        """Return the space as plain values, which a state folder stores to report differences.

        `least_letters` is the name of `min_letters` in every `space_id` there is.
        """
        values = asdict(self)
        values["least_letters"] = values.pop("min_letters")
        values["scheme"] = self.scheme.to_dict()
        return values


def digest(text: str) -> str:
    """Return 32 hexadecimal digits of the xxh3 hash of `text`: a table of 5 MB takes a millisecond."""
    return xxhash.xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass"))
