"""The evidence of a page as bytes, some 730 a page, to verify candidates with; `_native.Preparer` writes it.

Layout, little-endian: a header, with letters, size, shingles, numbers and sentences (uint32 each) and the
digest of the figures (uint64), then how many numbers, sentences and title terms follow (uint8 each), and how
many bytes of metadata (uint16). After it the sketch (64 bytes), sentences (uint32 each), title terms (uint16
each), numbers (uint16 each), the metadata, and to the end the stream of the page's tokens
(`native/src/stream/packed.rs`). Sentences and terms are ascending and distinct, numbers ascending.

Of many numbers or sentences, only those with the smallest hashes are kept, so two pages keep the same part
of what they have in common.
"""

import struct

MAX_NUMBERS, MAX_SENTENCES, MAX_TERMS, MAX_TOKENS = 64, 128, 32, 6144

BINS = 512
"""Bits of a sketch."""
SKETCH_BYTES = BINS // 8

_HEADER = struct.Struct("<IIIIIQBBBH")
_STREAM = struct.Struct("<BBHBH")
_STREAM_FLAGS = 3
_SKETCH_AT = _HEADER.size
_REST_AT = _SKETCH_AT + SKETCH_BYTES
_NOTHING = (0,) * 10
_NUMBERS, _SENTENCES, _TERMS, _METADATA = 6, 7, 8, 9
_BYTES_A_NUMBER, _BYTES_A_SENTENCE, _BYTES_A_TERM = 2, 4, 2
LENGTH_BITS, LETTERS_A_QUARTER = 6, 4
"""Of the value of a sentence."""


def _is_stream(packed: bytes) -> bool:
    """Whether bytes begin as a stream of tokens does."""
    if len(packed) < _STREAM.size:
        return False
    header: tuple[int, ...] = _STREAM.unpack_from(packed)
    flags, title, tokens, more_tokens, kept = header
    is_as_written = (
        flags <= _STREAM_FLAGS and title <= MAX_TERMS and kept == min(tokens + 0x10000 * more_tokens, MAX_TOKENS)
    )
    return is_as_written and len(packed) >= _STREAM.size + 2 * title + (2 * title + 6) // 8


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
            if _is_stream(packed[_REST_AT + values + metadata :]):
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
    def numbers(self) -> tuple[int, ...]:
        """The sample of the numbers, as hashes of value and unit of 16 bits, ascending."""
        count = self._header[_NUMBERS]
        return struct.unpack_from(f"<{count}H", self.packed, self._numbers_at) if count else ()

    @property
    def _numbers_at(self) -> int:
        return _REST_AT + _BYTES_A_SENTENCE * self._header[_SENTENCES] + _BYTES_A_TERM * self._header[_TERMS]

    @property
    def sentence_values(self) -> tuple[int, ...]:
        """The sample of the sentences, as values of 32 bits, ascending.

        The lowest LENGTH_BITS bits are the letters of the sentence divided by LETTERS_A_QUARTER and rounded; the others
        are of its hash (`native/src/evidence/sentences.rs`).
        """
        count = self._header[_SENTENCES]
        return struct.unpack_from(f"<{count}I", self.packed, _REST_AT) if count else ()

    @property
    def terms(self) -> tuple[int, ...]:
        """The terms of the title, as hashes, ascending."""
        count = self._header[_TERMS]
        start = _REST_AT + _BYTES_A_SENTENCE * self._header[_SENTENCES]
        return struct.unpack_from(f"<{count}H", self.packed, start) if count else ()

    @property
    def metadata(self) -> bytes:
        """The packed metadata."""
        start = self._numbers_at + _BYTES_A_NUMBER * self._header[_NUMBERS]
        return self.packed[start : start + self._header[_METADATA]]
