"""The evidence of many pages in columns, to leave out quickly those that cannot be similar to a page.

On a site whose template is most of each page, every kept page is a candidate by its sketch. Compared without
the host's own text, nearly none is similar, and a loop over columns finds that out in a fraction of a
microsecond each.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.overlap import screened
from dedup_service.core.evidence.packed import MAX_SENTENCES, Evidence
from dedup_service.core.evidence.sketch import SKETCH_BYTES

__all__ = ["EvidenceColumns", "similar"]

_WORDS = SKETCH_BYTES // 8


class EvidenceColumns:
    """Rows for the evidence of `size` pages, set one by one.

    sketches: uint64[size, words]. shingles: int64[size]. sentences: uint32[size, MAX_SENTENCES], of which the
    first counts int64[size] are used.
    """

    def __init__(self, size: int) -> None:
        self.sketches = np.empty((size, _WORDS), np.uint64)
        self.shingles = np.empty(size, np.int64)
        self.sentences = np.empty((size, MAX_SENTENCES), np.uint32)
        self.counts = np.empty(size, np.int64)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.shingles)

    def put(self, row: int, evidence: Evidence) -> None:
        """Set a row to the evidence of a page with shingles."""
        values = evidence.sentence_values
        self.sketches[row] = np.frombuffer(evidence.sketch, np.uint64)
        self.shingles[row] = evidence.shingles
        self.sentences[row, : len(values)] = values
        self.counts[row] = len(values)

    def move(self, rows: slice, other: "EvidenceColumns") -> None:
        """Copy rows to the beginning of other columns."""
        count = rows.stop - rows.start
        for mine, theirs in zip(self._columns, other._columns, strict=True):  # noqa: SLF001
            theirs[:count] = mine[rows]

    def similar(
        self, rows: npt.NDArray[np.int64], evidence: Evidence, common: npt.NDArray[np.uint32], min_jaccard: float
    ) -> npt.NDArray[np.int64]:
        """Return which rows may have a Jaccard similarity of `min_jaccard` to a page: int64[m].

        rows: int64[n], to look at. evidence: of the page. common: those of its sentences that are common on its
        host, ascending; without them the similarity is that of the sketches. A page without shingles is similar to
        none.
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
    def _columns(self) -> tuple[npt.NDArray[np.generic], ...]:
        return self.sketches, self.shingles, self.sentences, self.counts


def similar(
    pages: Sequence[Evidence], evidence: Evidence, common: npt.NDArray[np.uint32], min_jaccard: float
) -> list[int]:
    """Return the numbers of the pages that may be so similar to a page, as `EvidenceColumns.similar` does."""
    with_shingles = [number for number, page in enumerate(pages) if page.shingles]
    columns = EvidenceColumns(len(with_shingles))
    for row, number in enumerate(with_shingles):
        columns.put(row, pages[number])
    rows = columns.similar(np.arange(len(columns)), evidence, common, min_jaccard)
    return [with_shingles[row] for row in rows.tolist()]
