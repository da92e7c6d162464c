"""What is computed of the letters of pages, without their words, in one compiled call for a batch.

The letters of the body have n-grams, of which the `body` channel is made, and shingles, of which its min-hash keys and
the sketch are made; the rest of the evidence comes from the characters. The steps are those of `core.text`,
`core.features` and `core.evidence`. They are one call since each call costs as much as a short step, and without the
interpreter lock, since they take some fifty microseconds a page.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.keys import LEVELS, PARTS, min_hash_keys, packed_rows
from dedup_service.core.evidence.numbers import CHARACTERS
from dedup_service.core.evidence.packed import MAX_PACKED, SHINGLE, write_evidence
from dedup_service.core.evidence.sentences import ENDS
from dedup_service.core.features.simhash import LANE, majority
from dedup_service.core.kernels import kernel, long_kernel
from dedup_service.core.splitmix import GAMMA, mix64_in_kernel
from dedup_service.core.text.ngrams import distinct_ngrams
from dedup_service.core.text.normalise import letter_table, letters_among
from dedup_service.core.text.page_text import PageTexts

Points = npt.NDArray[np.uint32]


class TextFeatures(NamedTuple):
    """What the letters of a page give.

    letters: how many the body has. ngrams: how many different n-grams they have. body: their SimHash, None without any.
    evidence, keys: as in a `PreparedPage`.
    """

    letters: int
    ngrams: int
    body: int | None
    evidence: bytes
    keys: bytes


def text_features(pages: PageTexts, metadata: Sequence[bytes], *, shingle: int, bits: int) -> list[TextFeatures]:
    """Return what the letters of each page give.

    metadata: of each page, packed by `core.evidence.similarity`. shingle: letters of an n-gram of the `body` channel.
    bits: of a fingerprint, 64 or 128.
    """
    packed = np.empty(len(pages) * MAX_PACKED, np.uint8)
    sizes = np.fromiter(map(len, metadata), np.int64, len(pages))
    tables = CHARACTERS, ENDS, letter_table()
    counts, halves, keys = features_of_all(
        pages.points, pages.starts, pages.bodies, shingle, bits > LANE, sizes, *tables, packed
    )
    ends = counts[:, 2].cumsum()
    pieces, places = packed[: ends[-1] if len(ends) else 0].tobytes(), [0, *ends.tolist()]
    made = zip(counts.tolist(), halves.tolist(), pairwise(places), metadata, packed_rows(keys), strict=True)
    return [
        TextFeatures(
            letters,
            ngrams,
            low | high << LANE if ngrams else None,
            pieces[start:end] + more if letters or more else b"",
            of_page if letters >= SHINGLE else b"",
        )
        for (letters, ngrams, _), (low, high), (start, end), more, of_page in made
    ]


@long_kernel
def features_of_all(
    points: Points,
    starts: npt.NDArray[np.int64],
    bodies: npt.NDArray[np.int64],
    shingle: int,
    is_wide: bool,
    metadata: npt.NDArray[np.int64],
    characters: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.uint8],
    letter_table: npt.NDArray[np.bool_],
    packed: npt.NDArray[np.uint8],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
    """Write the packed evidence of n pages, one after the other, and return what else `features_of` does of each.

    points, starts, bodies: of `PageTexts`. metadata: how many bytes each has, int64[n]. packed: uint8[n * MAX_PACKED].
    Returned are letters, n-grams and the size of the evidence, int64[n, 3], the halves of the SimHash, uint64[n, 2],
    and the keys, uint32[n, PARTS, LEVELS].
    """
    pages = len(bodies)
    counts, halves = np.empty((pages, 3), np.int64), np.empty((pages, 2), np.uint64)
    keys = np.empty((pages, PARTS, LEVELS), np.uint32)
    at = 0
    for page in range(pages):
        body, title = points[starts[page] : bodies[page]], points[bodies[page] : starts[page + 1]]
        counts[page, 0], counts[page, 1], halves[page, 0], halves[page, 1], counts[page, 2], keys[page] = features_of(
            body, title, shingle, is_wide, metadata[page], characters, ends, letter_table, packed[at : at + MAX_PACKED]
        )
        at += counts[page, 2]
    return counts, halves, keys


@kernel
def features_of(
    body: Points,
    title: Points,
    shingle: int,
    is_wide: bool,
    metadata: int,
    characters: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.uint8],
    letter_table: npt.NDArray[np.bool_],
    packed: npt.NDArray[np.uint8],
) -> tuple[int, int, np.uint64, np.uint64, int, npt.NDArray[np.uint32]]:
    """Write packed evidence, and return the letters and n-grams, the halves of the SimHash, its size, and the keys.

    body, title: uint32[n] each. is_wide: whether a SimHash has two halves. metadata to packed: as
    of `packed.write_evidence`. The keys are uint32[PARTS, LEVELS].
    """
    letters = letters_among(body, letter_table)
    ngrams = distinct_ngrams(letters, shingle)
    low, high = majority(ngrams), np.uint64(0)
    if is_wide:
        others = np.empty(len(ngrams), np.uint64)
        for i in range(len(ngrams)):
            others[i] = mix64_in_kernel(ngrams[i] + GAMMA)
        high = majority(others)
    shingles = distinct_ngrams(letters, SHINGLE)
    size = write_evidence(title, body, letters, shingles, metadata, characters, ends, letter_table, packed)
    return len(letters), len(ngrams), low, high, size, min_hash_keys(shingles, LEVELS)
