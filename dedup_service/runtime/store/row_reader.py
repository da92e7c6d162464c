"""Read many rows and their bytes at once: locate, announce to the disk, verify, copy.

The rows of a batch lie anywhere in the files. Their addresses are computed in arrays. Blocks that were not read
since opening are announced to the operating system all together, so that the disk sees many reads at once, and
verified; the spans themselves are announced while the disk is in use, and copied in one loop.

"In use" is what the kernel says: `getrusage` counts the thread's reads from the disk. As long as a batch of reads from
a kind of file causes some, the next one is announced; a batch in the page cache costs no call for each span.
"""

import resource
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entry_rows import ROW
from dedup_service.runtime.store.address_table import AddressTable
from dedup_service.runtime.store.block_file import BLOCK_BYTES
from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.raw_memory import announce, any_unset, copy_spans, places_of
from dedup_service.runtime.store.segment import Segment
from dedup_service.runtime.store.stored_rows import EVIDENCE_SPAN, FILES, STORED_ROW, EvidenceSpans, Spans

_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)


@dataclass(slots=True)
class ReadCounts:
    """Work done so far. rows, spans: read; span_bytes: of spans; announced: calls of madvise; blocks: verified."""

    rows: int = 0
    spans: int = 0
    span_bytes: int = 0
    announced: int = 0
    blocks: int = 0


class RowReader:
    """Reads the rows of `segments`, whose files `table` locates. segment_rows: a power of two."""

    def __init__(self, segments: Mapping[int, Segment], table: AddressTable, segment_rows: int) -> None:
        self.counts = ReadCounts()
        self._segments = segments
        self._table = table
        self._shift = segment_rows.bit_length() - 1
        self._words = segment_rows // 64
        self._announcing = dict.fromkeys(FILES, True)

    def stored(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return STORED_ROW[n]; KeyError for a number that is no row, or one that compaction left out."""
        return self._rows(numbers, STORED_ROW)

    def rows(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return ROW[n]."""
        return self._rows(numbers, ROW)

    def evidence(self, numbers: npt.NDArray[np.int64]) -> EvidenceSpans:
        """Return the evidence of rows without reading the rows; KeyError as `stored`."""
        segments = numbers >> self._shift
        places = self._places(numbers, segments)
        where = self._records("spans", segments, places * EVIDENCE_SPAN.itemsize, EVIDENCE_SPAN)
        sizes = where["evidence_bytes"].astype(np.int64)
        self.counts.spans += len(numbers)
        spans = self.gather("evidence", segments, where["evidence_at"].astype(np.int64), sizes)
        return EvidenceSpans(spans.data, spans.starts, sizes - where["keys_bytes"])

    def spans(self, name: str, numbers: npt.NDArray[np.int64]) -> Spans:
        """Return the bytes of rows in the file `name`: names or texts."""
        rows = self.stored(numbers)
        segments = numbers >> self._shift
        sizes = rows[f"{name}_bytes"].astype(np.int64)
        if name == "texts":  # the files of the oldest texts are deleted
            sizes[self._table.lengths[name][segments] == 0] = 0
        self.counts.spans += len(numbers)
        return self.gather(name, segments, rows[f"{name}_at"].astype(np.int64), sizes)

    def gather(
        self,
        name: str,
        segments: npt.NDArray[np.int64],
        offsets: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
    ) -> Spans:
        """Return verified bytes of files: of each segment, `sizes` bytes from `offsets` on."""
        if ((offsets + sizes > self._table.lengths[name][segments]) & (sizes > 0)).any():
            raise StoreDamagedError(f"a row points outside the file of its {name}: rebuild the store from the log")
        before = _disk_reads()
        starts = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        data = np.empty(int(starts[-1]), np.uint8)
        is_read = self._verify(name, segments, offsets, sizes)
        addresses = self._table.addresses[name][segments] + offsets.astype(np.uint64)
        if self._announcing[name]:
            self.counts.announced += len(addresses) - int(np.count_nonzero(is_read))
            announce(addresses[~is_read], sizes[~is_read])
        copy_spans(addresses, sizes, starts, data)
        self._announcing[name] = _disk_reads() != before
        self.counts.span_bytes += len(data)
        return Spans(data, starts)

    def _rows(self, numbers: npt.NDArray[np.int64], kind: np.dtype[Any]) -> npt.NDArray[Any]:
        segments = numbers >> self._shift
        places = self._places(numbers, segments)
        self.counts.rows += len(numbers)
        return self._records("rows", segments, places * STORED_ROW.itemsize, kind)

    def _records(
        self, name: str, segments: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64], kind: np.dtype[Any]
    ) -> npt.NDArray[Any]:
        sizes = np.full(len(offsets), kind.itemsize, np.int64)
        return self.gather(name, segments, offsets, sizes).data.view(kind)

    def _places(self, numbers: npt.NDArray[np.int64], segments: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the places of rows in their files: int64[n]; KeyError names one that is in none."""
        rows = self._table.rows
        if not len(numbers):
            return numbers
        if int(numbers.min()) < 0 or int(segments.max()) >= len(rows):
            raise KeyError(f"no row {numbers.min()} or no row {numbers.max()}")
        offsets = numbers & ((1 << self._shift) - 1)
        places = places_of(self._table.members[segments], self._words, offsets)
        missing = (places < 0) | (places >= rows[segments])
        if missing.any():
            raise KeyError(f"no row {numbers[missing][0]}: it was never appended, or it was removed")
        return places

    def _verify(
        self,
        name: str,
        segments: npt.NDArray[np.int64],
        offsets: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_]:
        """Verify the blocks that were not yet read since opening; return which spans had some: bool[n]."""
        first, last = offsets // BLOCK_BYTES, (offsets + sizes - 1) // BLOCK_BYTES
        last[sizes == 0] = -1
        found = np.empty(len(segments), np.bool_)
        if not any_unset(self._table.flags[name][segments], first, last, found):
            return found
        segments, first, last = _merged(segments[found], first[found], last[found])
        lengths = self._table.lengths[name][segments]
        sizes = np.minimum((last + 1) * BLOCK_BYTES, lengths) - first * BLOCK_BYTES
        announce(self._table.addresses[name][segments] + (first * BLOCK_BYTES).astype(np.uint64), sizes)
        self.counts.announced += len(segments)
        for number, start, end in zip(segments.tolist(), first.tolist(), last.tolist(), strict=True):
            file = self._segments[number].files[name]
            before = file.blocks_verified
            file.verify(start, end)
            self.counts.blocks += file.blocks_verified - before
        return found


def _disk_reads() -> int:
    """Return how often this thread has read from the disk."""
    usage = resource.getrusage(_THREAD)
    return usage.ru_inblock + usage.ru_majflt


def _merged(
    segments: npt.NDArray[np.int64], first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Merge spans of blocks that overlap the one before or continue it: neighbouring rows share blocks."""
    continues = (segments[1:] == segments[:-1]) & (first[1:] >= first[:-1]) & (first[1:] <= last[:-1] + 1)
    begins = np.flatnonzero(np.concatenate([[True], ~continues]))
    return segments[begins], first[begins], np.maximum.reduceat(last, begins)
