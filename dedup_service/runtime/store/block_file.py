"""An append-only file, mapped into memory, with a checksum for each block.

Bytes are appended with `pwrite`, so a full disk is an error of a call and not a signal, and read through the
mapping. The file grows in steps ahead of its content; what lies beyond `length` is zeros that do not use the disk.

Checksums are the lower 32 bits of xxh3_64 of blocks of BLOCK_BYTES, in a file of their own (`.sums`). The seed has the
identity of the store, the name of the file and the number of the block in it, so a block of another file or place does
not fit. The checksum of the last, partial block and the length are in the manifest: whatever a crash left behind the
length is cut off when the file is opened.

Invariant: bytes that were committed change by `erase` only. A block is verified when it is first read after opening;
blocks appended since then are trusted. In a file of another store, any process may have erased bytes meanwhile: it is
read with the checksums that are there by then, which are mapped, so that they outlive the name of their file.
"""

import mmap
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash

from dedup_service.runtime.store.errors import StoreDamagedError, translated_os_errors
from dedup_service.runtime.store.manifest import INTENT, MANIFEST, read_manifest

BLOCK_BYTES = 4 << 10
"""Bytes under one checksum: a page of memory, so that a first read reads no more than it needs (docs/adr/0023)."""

SEQUENTIAL_BYTES = 64 << 10
"""Bytes under one checksum in files that are read in sequence only."""

_SUM = "<u4"
_SUM_BYTES = 4
_SUM_MASK = 0xFFFFFFFF

_MIN_CAPACITY = 1 << 20
_MAX_STEP = 64 << 20

ErasedBlocks = dict[int, int]
"""Checksums of blocks after an erasure, by block."""


class BlockFile:
    """The file at `path`: the first `length` bytes count. identity: of the store, for the seeds of checksums.

    tail_sum: checksum of the last, partial block. block_bytes: SEQUENTIAL_BYTES for a file that is never read at
    random places, else BLOCK_BYTES. read_only: what lies behind `length` stays, because a writer may own it. A path
    that is a symbolic link leads to a file of another store (`linked_store`), which is never changed.
    StoreDamagedError if the file or its checksums are too short.
    """

    def __init__(
        self,
        path: Path,
        identity: str,
        length: int = 0,
        tail_sum: int = 0,
        *,
        block_bytes: int = BLOCK_BYTES,
        read_only: bool = False,
    ) -> None:
        self.path = path
        self.is_link = path.is_symlink()
        self._read_only = read_only or self.is_link
        self._block_bytes = block_bytes
        self.length = length
        self.blocks_verified = 0
        self._seed = xxhash.xxh3_64_intdigest(f"{identity}/{path.name}".encode())
        self._committed = length
        self._tail_sum = tail_sum
        self._sums = self._read_sums()
        self._summed = len(self._sums)
        self._full = self._summed
        self._tail: xxhash.xxh3_64 | None = None
        self._map: mmap.mmap | None = None
        self._view: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._file: int | None = None
        self.verified: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        if length:
            self._check_length()
            self._remap(length)

    @property
    def sums_path(self) -> Path:
        """The file of checksums."""
        return self.path.with_name(self.path.name + ".sums")

    @property
    def address(self) -> int:
        """Where the file is mapped; 0 if it is empty. It changes when the file grows."""
        return 0 if self._map is None else int(self._view.ctypes.data)

    @property
    def capacity(self) -> int:
        """Bytes that are mapped."""
        return len(self._view)

    def append(self, data: bytes | memoryview) -> None:
        """Append `data`; StoreFullError, and the length is as before, if the disk does not take it."""
        size = len(data)
        if not size:
            return
        with translated_os_errors(self.path):
            self._reserve(self.length + size)
            assert self._file is not None
            _write_at(self._file, data, self.length)
        self._add_to_sums(memoryview(data))
        self.length += size

    def cut(self) -> "UnsyncedPart | None":
        """Return what is not durable yet, as it is now; None if everything is. Any thread may sync it."""
        if self.length == self._committed:
            return None
        part = UnsyncedPart(self.path, self.sums_path, self._summed, self._sums[self._summed : self._full].copy())
        self._summed, self._committed = self._full, self.length
        return part

    def tail_sum(self) -> int:
        """Return the checksum of the last, partial block; 0 if there is none."""
        return self._tail_sum if self._tail is None else self._tail.intdigest() & _SUM_MASK

    def verify(self, first: int, last: int) -> None:
        """Verify blocks `first` to `last`, inclusive; StoreDamagedError names one that is altered."""
        for block in range(first, last + 1):
            if not self.verified[block]:
                self._verify(block)

    def trust(self, blocks: Iterable[int]) -> None:
        """Do not verify some blocks."""
        for block in blocks:
            if block < len(self.verified):
                self.verified[block] = 1

    def read(self, start: int, size: int) -> bytes:
        """Return verified bytes."""
        if not size:
            return b""
        self.verify(start // self._block_bytes, (start + size - 1) // self._block_bytes)
        return self._view[start : start + size].tobytes()

    def pieces(self, piece_bytes: int = 1 << 20) -> Iterable[bytes]:
        """Yield the verified content, `piece_bytes` at a time; the next one is announced to the disk before."""
        self.announce(0, piece_bytes)
        for start in range(0, self.length, piece_bytes):
            self.announce(start + piece_bytes, piece_bytes)
            yield self.read(start, min(piece_bytes, self.length - start))

    def announce(self, start: int, size: int | None = None) -> None:
        """Ask the disk for bytes that are read soon; without a size, for all behind `start`."""
        size = self.length - start if size is None else min(size, self.length - start)
        if size > 0 and self._map is not None and hasattr(self._map, "madvise"):
            first = start // mmap.PAGESIZE * mmap.PAGESIZE
            self._map.madvise(mmap.MADV_WILLNEED, first, start + size - first)

    def erased_blocks(self, start: int, size: int) -> ErasedBlocks:
        """Return the checksums that erasing `size` bytes at `start` will leave; the last block may be partial."""
        return {
            block: self._sum(block, self._erased(block, start, size))
            for block in range(start // self._block_bytes, (start + size - 1) // self._block_bytes + 1)
        }

    def erased_tail(self, start: int, size: int, length: int) -> int | None:
        """Return the checksum that an erasure will leave of the partial block before `length`; None: of another."""
        block = length // self._block_bytes
        if (
            not length % self._block_bytes
            or not start // self._block_bytes <= block <= (start + size - 1) // self._block_bytes
        ):
            return None
        return self._sum(block, self._erased(block, start, size)[: length % self._block_bytes])

    def _erased(self, block: int, start: int, size: int) -> bytearray:
        first = block * self._block_bytes
        content = bytearray(self.read(first, min(self._block_bytes, self.length - first)))
        begin, end = max(0, start - first), min(len(content), start + size - first)
        content[begin:end] = bytes(end - begin)
        return content

    def erase(self, start: int, size: int, blocks: ErasedBlocks) -> None:
        """Overwrite bytes with zeros, and checksums with those of `erased_blocks`, durably."""
        self._refuse_link()
        overwrite_durably(self.path, bytes(size), start)
        for block, checksum in blocks.items():
            if block < self._full:
                self._sums[block] = checksum
            elif self._tail is None:
                self._tail_sum = checksum
            else:
                self._begin_tail()
        write_sums(self.sums_path, {at: checksum for at, checksum in blocks.items() if at < self._summed})

    def seal(self) -> None:
        """End appending: cut the space ahead and close the file; it stays mapped. Nothing is synced."""
        if self._file is None:
            return
        self._tail_sum = self.tail_sum()
        with translated_os_errors(self.path):
            os.ftruncate(self._file, self.length)
            os.close(self._file)
        self._file = self._tail = None
        if self.length:
            self._remap(self.length)

    def close(self) -> None:
        """Unmap and close the file."""
        self._view = np.zeros(0, np.uint8)
        if self._map is not None:
            self._map.close()
            self._map = None
        if self._file is not None:
            with suppress(OSError):  # the next opening cuts it
                os.ftruncate(self._file, self.length)
            os.close(self._file)
            self._file = None

    def delete(self) -> None:
        """Close the file and remove it with its checksums."""
        self.close()
        self.path.unlink(missing_ok=True)
        self.sums_path.unlink(missing_ok=True)

    def sums_bytes(self) -> int:
        """Return the bytes of memory of checksums and flags."""
        return self._sums.nbytes + self.verified.nbytes

    def _read_sums(self) -> npt.NDArray[np.uint32]:
        full = self.length // self._block_bytes
        if not full:
            return np.zeros(0, np.uint32)
        try:
            sums = np.memmap(self.sums_path, _SUM, "r") if self.is_link else np.fromfile(self.sums_path, _SUM, full)
        except (OSError, ValueError) as error:
            raise StoreDamagedError(f"{self.sums_path} cannot be read: {error}") from error
        if len(sums) < full:
            raise StoreDamagedError(f"{self.sums_path} has {len(sums)} checksums, {full} are needed")
        return sums[:full]

    def _check_length(self) -> None:
        try:
            size = self.path.stat().st_size
        except OSError as error:
            raise StoreDamagedError(f"{self.path} cannot be read: {error}") from error
        if size < self.length:
            raise StoreDamagedError(f"{self.path} has {size} bytes, the manifest says {self.length}")
        if size > self.length and not self._read_only:  # what a crash left
            with translated_os_errors(self.path):
                os.truncate(self.path, self.length)

    def _reserve(self, length: int) -> None:
        if self._file is None:
            self._refuse_link()
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            self._begin_tail()
        if length > self.capacity or self._map is None:
            capacity = max(_MIN_CAPACITY, length + min(length, _MAX_STEP))
            capacity = -(-capacity // _MIN_CAPACITY) * _MIN_CAPACITY
            os.ftruncate(self._file, capacity)
            self._remap(capacity)

    def _remap(self, capacity: int) -> None:
        verified = np.zeros(-(-capacity // self._block_bytes) + 1, np.uint8)
        kept = min(len(verified), len(self.verified))
        verified[:kept] = self.verified[:kept]
        file = os.open(self.path, os.O_RDONLY) if self._file is None else self._file
        try:
            new = mmap.mmap(file, capacity, access=mmap.ACCESS_READ)
        finally:
            if self._file is None:
                os.close(file)
        if hasattr(new, "madvise"):
            new.madvise(mmap.MADV_RANDOM)  # a fault reads one page, not the 128 KiB around it
        self.verified = verified
        old, self._map = self._map, new
        self._view = np.frombuffer(new, np.uint8)
        if old is not None:
            old.close()

    def _refuse_link(self) -> None:
        if self.is_link:
            raise RuntimeError(f"{self.path} leads to a file of another store, which is never changed")

    def _begin_tail(self) -> None:
        """Hash the partial block, which further bytes will continue."""
        start = self._full * self._block_bytes
        content = self.read(start, self.length - start) if self.length > start else b""
        self._tail = xxhash.xxh3_64(content, seed=self._seed_of(self._full))

    def _add_to_sums(self, data: memoryview) -> None:
        assert self._tail is not None
        at, used = 0, self.length - self._full * self._block_bytes
        while at < len(data):
            size = min(len(data) - at, self._block_bytes - used)
            self._tail.update(data[at : at + size])
            at, used = at + size, used + size
            self.verified[self._full] = 1
            if used == self._block_bytes:
                self._push_sum(self._tail.intdigest() & _SUM_MASK)
                self._tail = xxhash.xxh3_64(seed=self._seed_of(self._full))
                used = 0

    def _push_sum(self, checksum: int) -> None:
        if self._full == len(self._sums):
            grown = np.zeros(max(64, len(self._sums) * 3 // 2), np.uint32)
            grown[: self._full] = self._sums
            self._sums = grown
        self._sums[self._full] = checksum
        self._full += 1

    def _verify(self, block: int) -> None:
        start = block * self._block_bytes
        stop = min(start + self._block_bytes, self.length)
        if self._sum(block, self._view[start:stop]) != self._expected(block) and not self._is_erased(
            block, start, stop
        ):
            raise StoreDamagedError(f"{self.path}: block {block} (bytes {start} to {stop}) does not match its checksum")
        self.verified[block] = 1
        self.blocks_verified += 1

    def _expected(self, block: int) -> int:
        return int(self._sums[block]) if block < self._full else self._tail_sum

    def _is_erased(self, block: int, start: int, stop: int) -> bool:
        """Return whether the store that the file belongs to is erasing bytes of a block, or has."""
        home = self.path.resolve().parent
        if not self.is_link or (home / INTENT).exists():
            return self.is_link
        if block == self._full and (home / MANIFEST).exists():
            for segment in read_manifest(home).segments:
                label = segment.files.get(self.path.suffix[1:])
                if label is not None and self.path.name.startswith(f"{segment.stem}."):
                    self._tail_sum = label.tail_sum
        return self._sum(block, self._view[start:stop]) == self._expected(block)

    def _sum(self, block: int, content: bytes | bytearray | npt.NDArray[np.uint8]) -> int:
        return xxhash.xxh3_64_intdigest(content, self._seed_of(block)) & _SUM_MASK  # type: ignore[arg-type]

    def _seed_of(self, block: int) -> int:
        return (self._seed + block) & 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True, slots=True, eq=False)
class UnsyncedPart:
    """What was appended to a file since it was last synced. sums: of its full blocks from block `first` on."""

    path: Path
    sums_path: Path
    first: int
    sums: npt.NDArray[np.uint32]

    def sync(self) -> None:
        """Make it durable; StoreFullError if the disk does not take it."""
        sync_file(self.path)
        if len(self.sums):
            overwrite_durably(self.sums_path, self.sums.astype(_SUM).tobytes(), _SUM_BYTES * self.first)


def sync_file(path: Path) -> None:
    """Make the content of `path` durable; StoreFullError if the disk does not take it."""
    with translated_os_errors(path):
        file = os.open(path, os.O_RDWR)
        try:
            os.fdatasync(file)
        finally:
            os.close(file)


def write_sums(path: Path, sums: ErasedBlocks) -> None:
    """Write checksums of single blocks to `path`, durably."""
    for block, checksum in sums.items():
        overwrite_durably(path, checksum.to_bytes(_SUM_BYTES, "little"), _SUM_BYTES * block)


def overwrite_durably(path: Path, data: bytes, at: int) -> None:
    """Write `data` at offset `at` of the file `path`, which is created if it is missing; StoreFullError."""
    with translated_os_errors(path):
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _write_at(file, data, at)
            os.fdatasync(file)
        finally:
            os.close(file)


def _write_at(file: int, data: bytes | memoryview, at: int) -> None:
    """Write all of `data` at offset `at` of the descriptor `file`."""
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, at)
        view, at = view[written:], at + written
