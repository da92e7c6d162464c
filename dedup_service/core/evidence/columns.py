"""The evidence of many pages in columns, to leave out quickly those that cannot be similar to a page.

On a site whose template is most of each page, every kept page is a candidate by its sketch. Compared without
the host's own text, nearly none is similar, and a loop over columns finds that out in a fraction of a
microsecond each.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.overlap import screened
from dedup_service.core.evidence.packed import MAX_SENTENCES, Evidence, read_columns
from dedup_service.core.evidence.sketch import SKETCH_BYTES
from dedup_service.core.kernels import kernel_inline, long_kernel
from dedup_service.core.wide_kernels import COMPARED_BYTES, bits_apart

SKETCH_WORDS = SKETCH_BYTES // 8
assert SKETCH_BYTES == COMPARED_BYTES

_LINE_BYTES = 64
"""Bytes of a cache line."""


class EvidenceColumns:
    """Rows for the evidence of `size` pages.

    sketches: uint64[size, words]. shingles: int64[size]. sentences: uint32[size, MAX_SENTENCES], of which the
    first counts int64[size] are used.
    """

    def __init__(self, size: int) -> None:
        self.sketches = _in_cache_lines(size)
        self.shingles = np.empty(size, np.int64)
        self.sentences = np.empty((size, MAX_SENTENCES), np.uint32)
        self.counts = np.empty(size, np.int64)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.shingles)

    def __getitem__(self, part: slice) -> "EvidenceColumns":
        """Return some rows, as views."""
        columns = EvidenceColumns(0)
        columns.sketches, columns.shingles = self.sketches[part], self.shingles[part]
        columns.sentences, columns.counts = self.sentences[part], self.counts[part]
        return columns

    @classmethod
    def of(
        cls, data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> "EvidenceColumns":
        """Return the columns of packed evidence. data: uint8[m]; starts, sizes: of each page's in it, int64[n].

        Empty or invalid evidence reads as that of an empty page, which has no shingles.
        """
        columns = cls(len(starts))
        sketches, sentences = columns.sketches.view(np.uint8), columns.sentences.view(np.uint8)
        read_columns(data, starts, sizes, columns.shingles, columns.counts, sketches, sentences)
        return columns

    def put(self, row: int, other: "EvidenceColumns") -> None:
        """Write all rows of other columns from `row` on."""
        other.move(slice(0, len(other)), self, row)

    def move(self, rows: npt.NDArray[np.int64] | slice, other: "EvidenceColumns", first: int = 0) -> None:
        """Copy rows to other columns from row `first` on; within the same columns, ascending rows to lower ones."""
        chosen = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        copy_rows(chosen, first, *self._columns, *other._columns)  # noqa: SLF001

    def similar(
        self, rows: npt.NDArray[np.int64], evidence: Evidence, common: npt.NDArray[np.uint32], min_jaccard: float
    ) -> npt.NDArray[np.int64]:
        """Return which rows may have a Jaccard similarity of `min_jaccard` to a page: int64[m].

        rows: int64[n], to look at, with shingles. evidence: of the page. common: those of its sentences that are common
        on its host, ascending; without them the similarity is that of the sketches. A page without shingles is similar
        to none.
        """
        if not evidence.shingles:  # its evidence may have no sketch, or a part of one
            return rows[:0]
        return screened(
            np.frombuffer(evidence.sketch, np.uint64),
            evidence.shingles,
            evidence.letters,
            evidence.sentence_values,
            common,
            min_jaccard,
            rows,
            self.sketches,
            self.shingles,
            self.sentences,
            self.counts,
        )

    @property
    def _columns(
        self,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        return self.sketches, self.shingles, self.sentences, self.counts


def _in_cache_lines(size: int) -> npt.NDArray[np.uint64]:
    """Return uint64[size, SKETCH_WORDS] that begins with a cache line: so no vector of a sketch is in two of them."""
    words = np.empty((size + 1) * SKETCH_WORDS, np.uint64)
    first = -words.ctypes.data % _LINE_BYTES // 8
    return words[first : first + size * SKETCH_WORDS].reshape(size, SKETCH_WORDS)


@kernel_inline
def bits_between(ours: npt.NDArray[np.uint64], one: int, theirs: npt.NDArray[np.uint64], other: int) -> int:
    """Return in how many bits two rows of sketches differ: uint64[n, SKETCH_WORDS].

    Rows are given by their numbers, since a view of each would take longer than the comparison.
    """
    return bits_apart(ours.ctypes.data + SKETCH_BYTES * one, theirs.ctypes.data + SKETCH_BYTES * other)


@kernel_inline
def most_bits_apart(min_jaccard: float) -> int:
    """Return in how many bits sketches differ at most that say a Jaccard similarity of `min_jaccard`; -1 for none."""
    most = 64 * SKETCH_WORDS
    while most >= 0 and not max(0.0, 1.0 - 2.0 * most / (64 * SKETCH_WORDS)) >= min_jaccard:
        most -= 1
    return most


@long_kernel
def copy_rows(
    rows: npt.NDArray[np.int64],
    first: int,
    sketches: npt.NDArray[np.uint64],
    shingles: npt.NDArray[np.int64],
    sentences: npt.NDArray[np.uint32],
    counts: npt.NDArray[np.int64],
    to_sketches: npt.NDArray[np.uint64],
    to_shingles: npt.NDArray[np.int64],
    to_sentences: npt.NDArray[np.uint32],
    to_counts: npt.NDArray[np.int64],
) -> None:
    """Copy rows to those from `first` on of other columns, one after another; of sentences those that are used.

    rows: int64[n]. The columns are as in `EvidenceColumns`.
    """
    for place in range(len(rows)):
        row, to = rows[place], first + place
        for word in range(SKETCH_WORDS):
            to_sketches[to, word] = sketches[row, word]
        for number in range(counts[row]):
            to_sentences[to, number] = sentences[row, number]
        to_shingles[to], to_counts[to] = shingles[row], counts[row]


@long_kernel
def close_pairs(
    pages: npt.NDArray[np.int64],
    candidates: npt.NDArray[np.int64],
    ours: npt.NDArray[np.uint64],
    theirs: npt.NDArray[np.uint64],
    shingles: npt.NDArray[np.int64],
    min_jaccard: float,
) -> npt.NDArray[np.bool_]:
    """Return which pairs of a page and a candidate may be similar by their whole sketches: bool[n].

    pages, candidates: int64[n], rows of the sketches ours and theirs: uint64[rows, SKETCH_WORDS]. shingles: of the
    candidates' rows, int64; without any a candidate is similar to nothing. It is what `screened` asks of every
    row before it looks at sentences.
    """
    close, most = np.zeros(len(pages), np.bool_), most_bits_apart(min_jaccard)
    for pair in range(len(pages)):
        other = candidates[pair]
        close[pair] = shingles[other] > 0 and bits_between(ours, pages[pair], theirs, other) <= most
    return close
