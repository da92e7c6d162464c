"""What loops have to know of the pages of a batch, or of the entries of a window: in columns.

Hashes, flags and evidence of a page are read once, when its batch is announced. Its entry takes them from here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import ROW, EntryRows, Rows, indexed_by, page_flags
from dedup_service.core.evidence.columns import EvidenceColumns
from dedup_service.core.index.cell_index import SIEVE_BYTES
from dedup_service.core.page import CHANNELS, PreparedPage
from dedup_service.core.url import host_hash, url_hash

__all__ = ["BODY_MARK", "KEYS_MARK", "WORDS_MARK", "PageColumns"]

KEYS_MARK, WORDS_MARK, BODY_MARK = 1, 2, 4
"""What a page is compared by: shingles, the fingerprint of words, that of body."""


@dataclass(frozen=True, slots=True, eq=False)
class PageColumns:
    """n pages in order of their sequences.

    rows: ROW[n], what entries of the pages would have; the sizes of evidence and keys are left out. packed, keys: their
    evidence and keys. evidence: the same evidence, n rows. marks: uint8[n], what a page is compared by. claims:
    uint64[n], hash of the URL that a page claims, where claiming: bool[n].
    """

    rows: Rows
    packed: Sequence[bytes]
    keys: Sequence[bytes]
    evidence: EvidenceColumns
    marks: npt.NDArray[np.uint8]
    claims: npt.NDArray[np.uint64]
    claiming: npt.NDArray[np.bool_]

    @classmethod
    def of_pages(cls, batch: Sequence[tuple[int, PreparedPage]], ordinal: int) -> "PageColumns":
        """Return the columns of pages with their sequences. ordinal: of the first one."""
        pages = [page for _, page in batch]
        fingerprints = [page.fingerprint for page in pages]
        addresses = [page.page.canonical_url for page in pages]
        rows = np.zeros(len(pages), ROW)
        rows["sequence"] = [sequence for sequence, _ in batch]
        rows["words"] = [one.words or 0 for one in fingerprints]
        rows["body"] = [one.body or 0 for one in fingerprints]
        rows["body_hash"] = [page.body_hash or 0 for page in pages]
        rows["text_hash"] = [page.text_hash or 0 for page in pages]
        rows["url_hash"] = [url_hash(address) for address in addresses]
        rows["host"] = [host_hash(address) for address in addresses]
        rows["ordinal"] = np.arange(ordinal, ordinal + len(pages))
        rows["flags"] = [page_flags(page) for page in pages]
        claimed = [page.page.claimed_url for page in pages]
        claims = np.array([0 if url is None else url_hash(url) for url in claimed], np.uint64)
        claiming = np.array([url is not None for url in claimed], np.bool_)
        packed, keys = [page.evidence for page in pages], [page.keys for page in pages]
        return cls.of_rows(rows, packed, keys, claims, claiming)

    @classmethod
    def of_entries(cls, entries: Sequence[Entry]) -> "PageColumns":
        """Return the columns of entries."""
        packed, keys = [entry.evidence for entry in entries], [entry.keys for entry in entries]
        return cls.of_rows(EntryRows.from_entries(entries).rows, packed, keys)

    @classmethod
    def of_rows(
        cls,
        rows: Rows,
        packed: Sequence[bytes],
        keys: Sequence[bytes],
        claims: npt.NDArray[np.uint64] | None = None,
        claiming: npt.NDArray[np.bool_] | None = None,
    ) -> "PageColumns":
        """Return the columns of rows; without claims, no page claims another's URL."""
        if claims is None or claiming is None:
            claims, claiming = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.bool_)
        sizes = np.fromiter(map(len, packed), np.int64, len(packed))
        evidence = EvidenceColumns.of(np.frombuffer(b"".join(packed), np.uint8), np.cumsum(sizes) - sizes, sizes)
        marks = (evidence.shingles > 0).astype(np.uint8) * np.uint8(KEYS_MARK)
        flags = rows["flags"]
        for channel, mark in zip(CHANNELS, (WORDS_MARK, BODY_MARK), strict=True):
            marks |= indexed_by(flags, channel).astype(np.uint8) * np.uint8(mark)
        return cls(rows, packed, keys, evidence, marks, claims, claiming)

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self.marks)

    def __getitem__(self, part: slice) -> "PageColumns":
        return PageColumns(
            self.rows[part],
            self.packed[part],
            self.keys[part],
            self.evidence[part],
            self.marks[part],
            self.claims[part],
            self.claiming[part],
        )

    @property
    def sieves(self) -> npt.NDArray[np.uint64]:
        """The first bits of the sketches: uint64[n, 2]."""
        return self.evidence.sketches[:, : SIEVE_BYTES // 8]
