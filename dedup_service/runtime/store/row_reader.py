"""Read many rows and their bytes at once: locate, announce to the disk, verify, copy.

The rows of a batch lie anywhere in the files. Their addresses are computed in arrays. Blocks that were not read
since opening are announced to the operating system all together, so that the disk sees many reads at once, and
verified; the spans themselves are announced while the disk is in use, and copied in one loop.

"In use" is what the kernel says: `getrusage` counts the thread's reads from the disk. As long as a batch of reads from
a kind of file causes some, the next one is announced; a batch in the page cache costs no call for each span.

Loops over addresses of mapped files: copy spans, announce reads, find what was not yet verified.

A batch of reads touches many files. Their addresses are uint64 values in arrays, so that one compiled loop reads
from all of them, without an object for each row and without the interpreter lock while the disk is read.

Invariant: callers pass addresses of bytes that are mapped and verified (`block_file`), with spans inside their file.
"""

import resource
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dedup_service.core.decision.entry_rows import ROW
from dedup_service.core.kernels import long_kernel, popcount
from dedup_service.runtime.store.address_table import AddressTable
from dedup_service.runtime.store.block_file import BLOCK_BYTES
from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.segment import Segment
from dedup_service.runtime.store.stored_rows import EVIDENCE_SPAN, FILES, STORED_ROW, EvidenceSpans, Spans

PAGE_BYTES = 4096
"""Size of a page of memory: `madvise` takes addresses at multiples of it. Larger pages are multiples of it, too."""

_MADV_WILLNEED = 3  # the same number on Linux and macOS


def _copy(_typing: Any, _address: Any, _target: Any, _at: Any, _size: Any) -> Any:
    """Declare the type `copy(uint64, uint8[], int64, int64)` and emit its code: a memcpy."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, target, at, size = arguments
        view = context.make_array(signature.args[1])(context, builder, target)
        pointer = cgutils.voidptr_t
        to = builder.bitcast(builder.gep(view.data, [at]), pointer)
        copy: Any = cgutils.raw_memcpy
        copy(builder, to, builder.inttoptr(address, pointer), size, 1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.Array(types.uint8, 1, "C"), types.int64, types.int64), emit


def _load(kind: Any, bits: int) -> Any:
    def load(_typing: Any, _address: Any) -> Any:
        """Declare the type `load(uint64) -> unsigned integer` and emit its code."""

        def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], ir.PointerType(ir.IntType(bits)))
            return builder.load(pointer, align=1)

        return kind(types.uint64), emit

    return intrinsic(load)


_copy_bytes = cast("Any", intrinsic(_copy))
_byte_at = _load(types.uint8, 8)
_word_at = _load(types.uint64, 64)
_short_at = _load(types.uint32, 32)
_madvise: Any = types.ExternalFunction("madvise", types.int32(types.uintp, types.uintp, types.int32))

_MEMBER_WORDS = 8
"""Words of a bitmap of members between two of its counts: 512 rows."""


@long_kernel
def copy_spans(
    addresses: npt.NDArray[np.uint64],
    sizes: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    target: npt.NDArray[np.uint8],
) -> None:
    """Copy `sizes[i]` bytes from `addresses[i]` to `target[starts[i]:]`, for each i."""
    for place in range(len(addresses)):
        _copy_bytes(addresses[place], target, starts[place], sizes[place])


@long_kernel
def announce(addresses: npt.NDArray[np.uint64], sizes: npt.NDArray[np.int64]) -> int:
    """Tell the operating system that spans are about to be read, so that it reads them all at once.

    Returns the number of calls that failed; they are hints, so nothing is lost.
    """
    page = np.uint64(PAGE_BYTES - 1)
    failed = 0
    for place in range(len(addresses)):
        start = addresses[place] & ~page
        if _madvise(start, addresses[place] + np.uint64(sizes[place]) - start, _MADV_WILLNEED):
            failed += 1
    return failed


@long_kernel
def any_unset(
    flags: npt.NDArray[np.uint64],
    first: npt.NDArray[np.int64],
    last: npt.NDArray[np.int64],
    found: npt.NDArray[np.bool_],
) -> bool:
    """Find spans with a byte that is 0. flags: addresses of arrays of bytes; first, last: the bytes, inclusive.

    found: bool[n], written; returns whether any is true.
    """
    some = False
    for place in range(len(flags)):
        found[place] = False
        for at in range(first[place], last[place] + 1):
            if not _byte_at(flags[place] + np.uint64(at)):
                found[place] = some = True
    return some


@long_kernel
def places_of(members: npt.NDArray[np.uint64], words: int, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the places of rows in their compacted segments: int64[n]; -1 for a row that is not in it.

    members: address of each row's bitmap (uint64[words], then uint32 counts of the rows before every 512th), or 0
    where a segment is not compacted. offsets: of the rows in their segments.
    """
    places = offsets.copy()
    for at in range(len(offsets)):
        bitmap = members[at]
        if bitmap == 0:
            continue
        word, bit = offsets[at] >> 6, np.uint64(offsets[at] & 63)
        group = word // _MEMBER_WORDS
        own = _word_at(bitmap + np.uint64(word * 8))
        if not (own >> bit) & np.uint64(1):
            places[at] = -1
            continue
        count = np.int64(_short_at(bitmap + np.uint64(words * 8 + group * 4)))
        for before in range(group * _MEMBER_WORDS, word):
            count += popcount(_word_at(bitmap + np.uint64(before * 8)))
        places[at] = count + popcount(own & ((np.uint64(1) << bit) - np.uint64(1)))
    return places


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
