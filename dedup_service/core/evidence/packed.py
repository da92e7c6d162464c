"""The evidence of a page as bytes, some 470 a page, to verify candidates with.

Layout, little-endian: a header, with letters, size, shingles, numbers and sentences (uint32 each) and the
digest of the figures (uint64), then how many numbers, sentences and title terms follow (uint8 each), and how
many bytes of metadata (uint16). After it the sketch (256 bytes), sentences (uint32 each), title terms (uint16
each), values of numbers (uint16 each), their units (uint8 each), and the metadata. Sentences and terms are
ascending and distinct, numbers ascending by value and unit.

Of many numbers or sentences, only those with the smallest hashes are kept, so two pages keep the same part
of what they have in common.
"""

import struct

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.numbers import CHARACTERS, figures_digest, numbers_of, sampled_numbers
from dedup_service.core.evidence.sentences import ENDS, sentence_values
from dedup_service.core.evidence.sketch import BINS, SKETCH_BYTES, sketch
from dedup_service.core.kernels import kernel, kernel_inline
from dedup_service.core.splitmix import GAMMA, mix64_in_kernel
from dedup_service.core.text.ngrams import distinct_ngrams
from dedup_service.core.text.normalise import PLANE, code_points, is_letter_above, letter_table

SHINGLE = 5
"""Letters of a shingle. Measured: docs/quality.md."""

MAX_NUMBERS, MAX_SENTENCES, MAX_TERMS = 64, 128, 32

_HEADER = struct.Struct("<IIIIIQBBBH")
_SKETCH_AT = _HEADER.size
_REST_AT = _SKETCH_AT + SKETCH_BYTES
# From Thai on, letters count as those of scripts without spaces. So do Korean, whose words are short, and by
# their place in Unicode also letters of scripts with spaces: Georgian, Ethiopic, polytonic Greek, and those of
# Latin Extended Additional, as in Vietnamese (ạ is U+1EA1).
_UNSPACED_FROM = 0x0E00
_NOTHING = (0,) * 10
_NUMBERS, _SENTENCES, _TERMS, _METADATA = 6, 7, 8, 9
_BYTES_A_NUMBER, _BYTES_A_SENTENCE, _BYTES_A_TERM = 3, 4, 2
MAX_PACKED = _REST_AT + MAX_SENTENCES * _BYTES_A_SENTENCE + MAX_TERMS * _BYTES_A_TERM + MAX_NUMBERS * _BYTES_A_NUMBER
"""Bytes of packed evidence without metadata, at most."""


def pack_evidence(
    title: str,
    folded: str,
    letters: npt.NDArray[np.uint32],
    metadata: bytes,
    shingles: npt.NDArray[np.uint64] | None = None,
) -> bytes:
    """Return the evidence of a page; b"" if it has neither text nor metadata.

    title, folded: the folded title and body. letters: of the body, uint32[n]. metadata: packed by
    `core.evidence.similarity`, below 64 KiB. shingles: distinct n-grams of SHINGLE letters, uint64[m], if they are
    known already.
    """
    if not len(letters) and not metadata:
        return b""
    if shingles is None:
        shingles = distinct_ngrams(letters, SHINGLE)
    written = np.empty(MAX_PACKED, np.uint8)
    texts = code_points(title), code_points(folded)
    size = write_evidence(*texts, letters, shingles, len(metadata), CHARACTERS, ENDS, letter_table(), written)
    return written[:size].tobytes() + metadata


@kernel
def write_evidence(
    title: npt.NDArray[np.uint32],
    body: npt.NDArray[np.uint32],
    letters: npt.NDArray[np.uint32],
    shingles: npt.NDArray[np.uint64],
    metadata: int,
    characters: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.uint8],
    letter_table: npt.NDArray[np.bool_],
    written: npt.NDArray[np.uint8],
) -> int:
    """Write packed evidence up to its metadata into `written`, uint8[MAX_PACKED], and return how many bytes there are.

    title, body: code points of the folded texts, uint32[n] each. letters, shingles: as of `pack_evidence`. metadata:
    how many bytes it has. characters, ends: CHARACTERS and ENDS. letter_table: `normalise.letter_table()`.
    """
    values, units = numbers_of(body, characters)
    kept_values, kept_units = sampled_numbers(values, units, MAX_NUMBERS)
    sentences = sentence_values(body, ends)
    kept_sentences = sentences[:MAX_SENTENCES]
    terms = title_terms(title, letter_table)
    alphabetic = 0
    for letter in letters:
        alphabetic += letter < np.uint32(_UNSPACED_FROM)
    size = len(letters) - alphabetic + alphabetic * 8 // 15
    at = 0
    for number in (len(letters), size, len(shingles), len(values), len(sentences)):
        at = put(written, at, np.uint64(number), 4)
    at = put(written, at, figures_digest(values, units), 8)
    for number in (len(kept_values), len(kept_sentences), len(terms)):
        at = put(written, at, np.uint64(number), 1)
    at = put(written, at, np.uint64(metadata), 2)
    for byte in sketch(shingles):
        at = put(written, at, np.uint64(byte), 1)
    for sentence in kept_sentences:
        at = put(written, at, np.uint64(sentence), 4)
    for term in terms:
        at = put(written, at, np.uint64(term), 2)
    for value in kept_values:
        at = put(written, at, np.uint64(value), 2)
    for unit in kept_units:
        at = put(written, at, np.uint64(unit), 1)
    return at


@kernel_inline
def put(written: npt.NDArray[np.uint8], at: int, number: np.uint64, size: int) -> int:
    """Write a number in `size` bytes, and return where they end."""
    for byte in range(size):
        written[at + byte] = np.uint8(number >> np.uint64(8 * byte))
    return at + size


@kernel
def title_terms(title: npt.NDArray[np.uint32], letters: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint16]:
    """Return hashes of the terms of a folded title uint32[n], ascending and distinct: uint16[m].

    Terms are words, or pairs of letters from `_UNSPACED_FROM` on; one such letter between others is a term, too.
    letters: which characters of the first plane are letters, bool[65536].
    """
    hashes = np.empty(len(title) + 1, np.uint64)
    count = run = 0
    word = np.uint64(0)
    before = np.uint32(0)
    for place in range(len(title) + 1):
        code = title[place] if place < len(title) else np.uint32(0)
        is_letter = letters[code] if code < np.uint32(PLANE) else is_letter_above(code)
        if run and (not is_letter or (code < np.uint32(_UNSPACED_FROM)) != (before < np.uint32(_UNSPACED_FROM))):
            if before < np.uint32(_UNSPACED_FROM) or run == 1:
                hashes[count] = word
                count += 1
            run, word = 0, np.uint64(0)
        if is_letter:
            if run and code >= np.uint32(_UNSPACED_FROM):
                word = mix64_in_kernel(np.uint64(before) + GAMMA)
            word = mix64_in_kernel(word + np.uint64(code) + GAMMA)
            if run and code >= np.uint32(_UNSPACED_FROM):
                hashes[count] = word
                count += 1
            run += 1
            before = code
    return np.unique((hashes[:count] >> np.uint64(48)).astype(np.uint16))[:MAX_TERMS]


class Evidence:
    """Packed evidence, unpacked as needed. Empty or invalid bytes read as the evidence of an empty page."""

    __slots__ = ("_bits", "_header", "packed")

    def __init__(self, packed: bytes) -> None:
        self.packed = packed
        self._bits: int | None = None
        self._header: tuple[int, ...] = _NOTHING
        if len(packed) >= _REST_AT:
            header = _HEADER.unpack_from(packed)
            numbers, sentences, terms, metadata = header[_NUMBERS:]
            values = _BYTES_A_NUMBER * numbers + _BYTES_A_SENTENCE * sentences + _BYTES_A_TERM * terms
            if len(packed) == _REST_AT + values + metadata:
                self._header = header

    @property
    def letters(self) -> int:
        """Letters and digits of the body."""
        return self._header[0]

    @property
    def size(self) -> int:
        """Letters, 15 of an alphabet counted as 8, since English needs twice as many as Chinese."""
        return self._header[1]

    @property
    def shingles(self) -> int:
        """Number of distinct shingles."""
        return self._header[2]

    @property
    def number_count(self) -> int:
        """Number of numbers, with repetitions."""
        return self._header[3]

    @property
    def sentence_count(self) -> int:
        """Number of distinct sentences."""
        return self._header[4]

    @property
    def figures(self) -> int:
        """Digest of all figures, unsigned 64-bit; equal if and only if the pages have the same ones."""
        return self._header[5]

    @property
    def sketch(self) -> bytes:
        """The sketch of the shingles: SKETCH_BYTES bytes."""
        return self.packed[_SKETCH_AT:_REST_AT]

    def rough_jaccard(self, packed: bytes) -> float:
        """Return the estimated Jaccard similarity to other packed evidence, in a tenth of the time.

        The result is arbitrary if either page has no shingles.
        """
        if self._bits is None:
            self._bits = int.from_bytes(self.sketch, "little")
        differing = (self._bits ^ int.from_bytes(packed[_SKETCH_AT:_REST_AT], "little")).bit_count()
        return 1.0 - 2.0 * differing / BINS

    @property
    def numbers(self) -> tuple[tuple[int, int], ...]:
        """The sample of the numbers, as hashes of value (16 bits) and unit (8 bits), ascending."""
        count = self._header[_NUMBERS]
        start = len(self.packed) - self._header[_METADATA] - _BYTES_A_NUMBER * count
        values = struct.unpack_from(f"<{count}H", self.packed, start) if count else ()
        return tuple(zip(values, self.packed[start + 2 * count :], strict=False))

    @property
    def sentence_values(self) -> npt.NDArray[np.uint32]:
        """The sample of the sentences, as values (`core.evidence.sentences`), ascending: uint32[n]."""
        count = self._header[_SENTENCES]
        return np.frombuffer(self.packed, np.dtype("<u4"), count, _REST_AT if count else 0)

    @property
    def terms(self) -> tuple[int, ...]:
        """The terms of the title, as hashes, ascending."""
        count = self._header[_TERMS]
        start = _REST_AT + _BYTES_A_SENTENCE * self._header[_SENTENCES]
        return struct.unpack_from(f"<{count}H", self.packed, start) if count else ()

    @property
    def metadata(self) -> bytes:
        """The packed metadata."""
        size = self._header[_METADATA]
        return self.packed[len(self.packed) - size :] if size else b""
