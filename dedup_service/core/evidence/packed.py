"""What is kept of a page to verify a candidate with: some 400 bytes.

Header: letters, size, shingles, numbers and sentences (uint32 each), then how many of numbers, sentences
and title terms follow (uint8 each) and how many bytes of metadata (uint16), little-endian. Then the eight keys
(uint32), the sketch (256 bytes), numbers, sentences and title terms (uint16 each, ascending), and the metadata.

Of many numbers or sentences only those with the smallest hashes are kept, which is a sample of both pages alike.
"""

import re
import struct
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import xxhash

from dedup_service.core.evidence.numbers_sentences import KINDS, numbers_and_sentences, sampled
from dedup_service.core.evidence.sketch import BINS, KEYS, SKETCH_BYTES, sketch
from dedup_service.core.kernels import kernel, long_kernel
from dedup_service.core.text.ngrams import distinct_ngrams

__all__ = [
    "MAX_NUMBERS",
    "MAX_SENTENCES",
    "MAX_TERMS",
    "SHINGLE",
    "Evidence",
    "keys_of",
    "pack_evidence",
    "shared_keys",
]

SHINGLE = 5
"""Letters of a shingle. Data: docs/quality.md."""

MAX_NUMBERS, MAX_SENTENCES, MAX_TERMS = 48, 48, 32

_HEADER = struct.Struct("<IIIIIBBBH")
_KEYS_AT = _HEADER.size
_SKETCH_AT = _KEYS_AT + 4 * KEYS
_REST_AT = _SKETCH_AT + SKETCH_BYTES
_UNSPACED_FROM = 0x0E00  # Thai: from here on scripts without spaces, and Korean, whose words are short
_UNSPACED = chr(_UNSPACED_FROM)
_NOTHING = (0,) * 9
_NO_KEYS = np.zeros(KEYS, np.uint32)
_TERM = re.compile(r"[^\W_\u0e00-\U0010ffff]+|[^\W_\u0000-\u0dff]+")  # of scripts with spaces, of others


def pack_evidence(title: str, folded: str, letters: npt.NDArray[np.uint32], metadata: bytes) -> bytes:
    """Return the evidence of a page; b"" where it has neither text nor metadata.

    title, folded: folded. letters uint32[n]: of the body. metadata: packed (`core.evidence.similarity`), below 64 KiB.
    """
    if not len(letters) and not metadata:
        return b""
    code_points = np.frombuffer(folded.encode("utf-32-le"), dtype=np.uint32)
    counts, keys, bits, numbers, sentences = _of_body(letters, code_points, KINDS)
    terms = title_terms(title)
    header = _HEADER.pack(len(letters), *counts, len(numbers), len(sentences), len(terms), len(metadata))
    parts = (header, *(part.tobytes() for part in (keys, bits, numbers, sentences, terms)), metadata)
    return b"".join(parts)


@kernel
def _of_body(
    letters: npt.NDArray[np.uint32], code_points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8]
) -> tuple[
    tuple[int, int, int, int],
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint8],
    npt.NDArray[np.uint16],
    npt.NDArray[np.uint16],
]:
    """Return size, shingles, numbers and sentences of a body, counted, then keys, bits, numbers, sentences to keep."""
    shingles = distinct_ngrams(letters, SHINGLE)
    bits, keys = sketch(shingles)
    numbers, sentences = numbers_and_sentences(code_points, kinds)
    of_alphabets = 0
    for letter in letters:
        of_alphabets += letter < np.uint32(_UNSPACED_FROM)
    size = len(letters) - of_alphabets + of_alphabets * 8 // 15
    counts = (size, len(shingles), len(numbers), len(sentences))
    return counts, keys, bits, sampled(numbers, MAX_NUMBERS), sampled(sentences, MAX_SENTENCES)


def title_terms(title: str) -> npt.NDArray[np.uint16]:
    """Return hashes of the terms of a folded title, ascending: its words, pairs of letters where none are spaced."""
    terms = set()
    for run in _TERM.findall(title):
        terms.update([run] if run[0] < _UNSPACED or len(run) == 1 else [a + b for a, b in pairwise(run)])
    hashes = np.fromiter((xxhash.xxh3_64_intdigest(term.encode()) for term in terms), dtype=np.uint64, count=len(terms))
    return sampled(hashes, MAX_TERMS)


def keys_of(
    packed: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """Return which of n pieces of packed evidence are such with shingles, int64[m], and their keys, uint32[m, KEYS].

    packed: all pieces, uint8. starts, sizes: of each piece, int64[n].
    """
    found = np.flatnonzero(sizes >= _REST_AT)
    header = packed[starts[found, None] + np.arange(_HEADER.size)]
    values = header[:, 20:23].sum(axis=1, dtype=np.int64)
    metadata = header[:, 23] + (header[:, 24].astype(np.int64) << 8)
    shingles = header[:, 8:12].any(axis=1)
    found = found[shingles & (sizes[found] == _REST_AT + 2 * values + metadata)]
    keys = packed[starts[found, None] + _KEYS_AT + np.arange(4 * KEYS)]
    return found, np.ascontiguousarray(keys).view("<u4").astype(np.uint32)


@long_kernel
def shared_keys(
    packed: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    keys: npt.NDArray[np.uint32],
) -> npt.NDArray[np.int64]:
    """Return how many of `keys`, distinct and none of them 0, each of n pieces of packed evidence has: int64[n]."""
    shared = np.zeros(len(starts), dtype=np.int64)
    for piece in range(len(starts)):
        if sizes[piece] < _REST_AT:
            continue
        for number in range(KEYS):
            at = starts[piece] + _KEYS_AT + 4 * number
            key = np.uint32(0)
            for byte in range(4):
                key |= np.uint32(packed[at + byte]) << np.uint32(8 * byte)
            for own in keys:
                shared[piece] += own == key
    return shared


class Evidence:
    """Packed evidence, read as it is asked for; none (b""), or bytes that are none, read as a page without anything."""

    __slots__ = ("_bits", "_header", "packed")

    def __init__(self, packed: bytes) -> None:
        self.packed = packed
        self._bits: int | None = None
        self._header: tuple[int, ...] = _NOTHING
        if len(packed) >= _REST_AT:
            header = _HEADER.unpack_from(packed)
            if len(packed) == _REST_AT + 2 * (header[5] + header[6] + header[7]) + header[8]:
                self._header = header

    @property
    def letters(self) -> int:
        """How many letters and digits the body has."""
        return self._header[0]

    @property
    def size(self) -> int:
        """Letters, 15 of an alphabet counting as 8: a text in English needs twice as many to say the same."""
        return self._header[1]

    @property
    def shingles(self) -> int:
        """How many distinct shingles."""
        return self._header[2]

    @property
    def number_count(self) -> int:
        """How many numbers."""
        return self._header[3]

    @property
    def sentence_count(self) -> int:
        """How many distinct sentences."""
        return self._header[4]

    @property
    def keys(self) -> npt.NDArray[np.uint32]:
        """The keys that a candidate shares at least one of: uint32[KEYS], 0 for one that is missing."""
        if not self.shingles:
            return _NO_KEYS
        return np.frombuffer(self.packed, np.dtype("<u4"), KEYS, _KEYS_AT)

    @property
    def sketch(self) -> bytes:
        """The sketch of the shingles."""
        return self.packed[_SKETCH_AT:_REST_AT]

    def rough_jaccard(self, packed: bytes) -> float:
        """Return the estimate for another page's packed evidence at a tenth of the price: of what may be none, any."""
        if self._bits is None:
            self._bits = int.from_bytes(self.sketch, "little")
        differing = (self._bits ^ int.from_bytes(packed[_SKETCH_AT:_REST_AT], "little")).bit_count()
        return 1.0 - 2.0 * differing / BINS

    @property
    def numbers(self) -> tuple[int, ...]:
        """The sample of the numbers."""
        return self._values(0, 5)

    @property
    def sentences(self) -> tuple[int, ...]:
        """The sample of the sentences."""
        return self._values(self._header[5], 6)

    @property
    def terms(self) -> tuple[int, ...]:
        """The terms of the title."""
        return self._values(self._header[5] + self._header[6], 7)

    @property
    def metadata(self) -> bytes:
        """The packed metadata."""
        size = self._header[8]
        return self.packed[len(self.packed) - size :] if size else b""

    def _values(self, before: int, field: int) -> tuple[int, ...]:
        count = self._header[field]
        return struct.unpack_from(f"<{count}H", self.packed, _REST_AT + 2 * before) if count else ()
