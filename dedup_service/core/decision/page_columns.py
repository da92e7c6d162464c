"""What loops have to know of the pages of a batch, or of the entries of a window: in columns.

Hashes, flags and evidence of a page are read once, when its batch is announced. Its entry takes them from here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup_service.core import record_columns as recorded
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import (
    BODY_DECIDES,
    BODY_HASH,
    INDEXED,
    ROW,
    ROW_STRUCT,
    TEXT_HASH,
    EntryRows,
    Rows,
    channel_flag,
    page_flags,
)
from dedup_service.core.evidence.columns import EvidenceColumns
from dedup_service.core.evidence.packed import size_of
from dedup_service.core.index.cell_index import SIEVE_BYTES
from dedup_service.core.kernels import kernel
from dedup_service.core.page import CHANNELS, PreparedPage
from dedup_service.core.record_columns import PagesInColumns, RecordColumns
from dedup_service.core.rules.match_row import LONG
from dedup_service.core.url import url_and_host_hash, url_hash

KEYS_MARK, WORDS_MARK, BODY_MARK = 1, 2, 4
"""What a page is compared by: shingles, the fingerprint of words, that of body."""


_FLAG_OF = {
    recorded.WORDS: channel_flag("words"),
    recorded.BODY: channel_flag("body"),
    recorded.BODY_HASH: BODY_HASH,
    recorded.TEXT_HASH: TEXT_HASH,
}
_WORDS_INDEXED, _BODY_INDEXED = (INDEXED | channel_flag(channel) for channel in CHANNELS)


@dataclass(frozen=True, slots=True, eq=False)
class PageColumns:
    """n pages in order of their sequences.

    rows: ROW[n], what entries of the pages would have; the sizes of evidence and keys are left out. packed, keys: their
    evidence and keys. evidence: the same evidence, n rows. marks: uint8[n], what a page is compared by. claims:
    uint64[n], hash of the URL that a page claims, where claiming: bool[n]. data, starts: the evidence end to end,
    uint8[m], and where that of each page begins and the last one ends in it: int64[n + 1].
    """

    rows: Rows
    packed: Sequence[bytes]
    keys: Sequence[bytes]
    evidence: EvidenceColumns
    marks: npt.NDArray[np.uint8]
    claims: npt.NDArray[np.uint64]
    claiming: npt.NDArray[np.bool_]
    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]

    @classmethod
    def of_pages(cls, batch: Sequence[tuple[int, PreparedPage]], ordinal: int) -> "PageColumns":
        """Return the columns of pages with their sequences. ordinal: of the first one."""
        if isinstance(batch, PagesInColumns):
            return cls.of_records(batch.columns, ordinal)
        pages = [page for _, page in batch]
        values = [packed_row(sequence, page, ordinal + place) for place, (sequence, page) in enumerate(batch)]
        rows = np.frombuffer(bytearray().join(values), ROW)
        claimed = [page.page.claimed_url for page in pages]
        claims = np.array([0 if url is None else url_hash(url) for url in claimed], np.uint64)
        claiming = np.array([url is not None for url in claimed], np.bool_)
        packed, keys = [page.evidence for page in pages], [page.keys for page in pages]
        return cls.of_rows(rows, packed, keys, claims, claiming)

    @classmethod
    def of_records(cls, records: RecordColumns, ordinal: int) -> "PageColumns":
        """Return the columns of records that all are pages. ordinal: of the first one."""
        rows = np.zeros(len(records), ROW)
        rows["sequence"] = records.sequences
        rows["words"], rows["body"] = records.words, records.bodies
        rows["body_hash"], rows["text_hash"] = records.body_hashes, records.text_hashes
        hashes = [url_and_host_hash(url) for url in records.canonical_urls]
        rows["url_hash"], rows["host"] = [url for url, _ in hashes], [host for _, host in hashes]
        rows["ordinal"] = np.arange(ordinal, ordinal + len(records))
        rows["flags"] = record_flags(records)
        claims, claiming = np.zeros(len(records), np.uint64), np.zeros(len(records), np.bool_)
        for place, url in enumerate(records.claimed_urls):
            if url is not None:
                claims[place], claiming[place] = url_hash(url), True
        return cls.of_rows(rows, records.evidence, records.keys, claims, claiming)

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
        sizes, starts = np.fromiter(map(len, packed), np.int64, len(packed)), np.zeros(len(packed) + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        data = np.frombuffer(bytearray().join(packed), np.uint8)
        evidence = EvidenceColumns.of(data, starts[:-1], sizes)
        marks = marks_of(rows["flags"], evidence.shingles)
        return cls(rows, packed, keys, evidence, marks, claims, claiming, data, starts)

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
            self.data,
            self.starts[slice(part.indices(len(self))[0], part.indices(len(self))[1] + 1)],
        )

    def where(self, mask: npt.NDArray[np.bool_]) -> "PageColumns":
        """Return the pages for which mask: bool[n] is true."""
        places = np.flatnonzero(mask).tolist()
        packed, keys = [self.packed[place] for place in places], [self.keys[place] for place in places]
        return PageColumns.of_rows(self.rows[mask], packed, keys, self.claims[mask], self.claiming[mask])

    @property
    def sieves(self) -> npt.NDArray[np.uint64]:
        """The first bits of the sketches: uint64[n, 2]."""
        return self.evidence.sketches[:, : SIEVE_BYTES // 8]


def packed_row(sequence: int, page: PreparedPage, ordinal: int) -> bytes:
    """Return ROW of a page as bytes; a column after another would take ten arrays for a batch of one page."""
    fingerprint = page.fingerprint
    url, host = url_and_host_hash(page.page.canonical_url)
    return ROW_STRUCT.pack(
        sequence,
        fingerprint.words or 0,
        fingerprint.body or 0,
        page.body_hash or 0,
        page.text_hash or 0,
        url,
        host,
        ordinal,
        0,
        0,
        page_flags(page),
    )


def record_flags(records: RecordColumns) -> npt.NDArray[np.uint8]:
    """Return what `page_flags` returns of each page."""
    flags = np.zeros(len(records), np.uint8)
    for present, flag in _FLAG_OF.items():
        flags[(records.present & present) != 0] |= flag
    flags[[reason is None for reason in records.reasons]] |= INDEXED
    if any(records.evidence):
        sizes = np.fromiter(map(size_of, records.evidence), np.int64, len(records))
        flags[(sizes >= LONG) & ((records.present & recorded.BODY_HASH) != 0)] |= BODY_DECIDES
    return flags


@kernel
def marks_of(flags: npt.NDArray[np.uint8], shingles: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return what pages are compared by: uint8[n]. flags: as in ROW."""
    marks = np.zeros(len(flags), np.uint8)
    for page in range(len(flags)):
        if shingles[page] > 0:
            marks[page] |= KEYS_MARK
        if flags[page] & _WORDS_INDEXED == _WORDS_INDEXED:
            marks[page] |= WORDS_MARK
        if flags[page] & _BODY_INDEXED == _BODY_INDEXED:
            marks[page] |= BODY_MARK
    return marks
