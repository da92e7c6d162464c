"""One file with the pieces of several tables, written in the background and read once.

The file has the pieces end to end, then an index with an entry for each of them: table, end of its range of the
hash space, first words of the segment, offset, sizes, stamp and checksum. The checksum of the index is in the
manifest, so all of the file is covered. Checksums are xxh3_64, seeded with store, file and number of the piece.

A file that no manifest names is deleted when the store is opened, so one that a crash cut off is never read.
"""

import os
import queue
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from dedup_service.core.index.quotient_segment import FIELDS, HEAD_BYTES, MAX_PIECE_BYTES
from dedup_service.runtime.store.errors import StoreDamagedError, translated_os_errors
from dedup_service.runtime.store.manifest import ImageFileLabel

PIECE = np.dtype(
    [
        ("end", "<i8"),
        ("offset", "<i8"),
        ("stamp", "<i8"),
        ("sum", "<u8"),
        ("size", "<u4"),
        ("more", "<u4"),
        ("table", "<u4"),
        ("head", "<i8", FIELDS),
    ]
)
"""An entry of the index: `size` bytes of a quotient table and `more` bytes of the caller from `offset` on."""

_BUFFERS = 16
"""Pieces that wait to be written, at most: 8 MB."""

_SYNC_BYTES = 64 << 20

_ALIGNED = 4096
"""What place, size and memory are multiples of when a file is read past the page cache."""

_WORD_BYTES = 8

Bytes = npt.NDArray[np.uint8]


class ImageWriter:
    """Writes the image file `number` in `folder`, in a thread. identity: of the store."""

    def __init__(self, folder: Path, identity: str, number: int) -> None:
        self.path = image_path(folder, number)
        self.written_bytes = 0
        self._number = number
        self._seed = _seed(identity, self.path)
        self._free: queue.SimpleQueue[Bytes] = queue.SimpleQueue()
        self._made = 0
        self._pieces: list[tuple[Any, ...]] = []
        self._unsynced = 0
        self._thread = ThreadPoolExecutor(1, "image")
        self._file = -1
        self._pending: list[Future[None]] = [self._thread.submit(self._create)]
        self._ended: Future[ImageFileLabel] | None = None

    def buffer(self, *, wait: bool = False) -> Bytes | None:
        """Return memory for the next piece, uint8[MAX_PIECE_BYTES].

        As long as many pieces wait to be written, return None, or wait for one. StoreFullError if writing failed.
        """
        self._raise_failure()
        if self._made < _BUFFERS and self._free.empty():
            self._made += 1
            return np.empty(MAX_PIECE_BYTES, np.uint8)
        try:
            buffer = self._free.get(block=wait)
        except queue.Empty:
            return None
        self._raise_failure()
        return buffer

    def add(self, table: int, end: int, stamp: int, buffer: Bytes, size: int, more: bytes) -> None:
        """Write the first `size` bytes of a buffer, which this takes back, and `more`."""
        self._pending.append(self._thread.submit(self._write, table, end, stamp, buffer, size, more))

    def end(self) -> None:
        """Write the index after the last piece, and make the file durable."""
        self._ended = self._thread.submit(self._finish)
        self._thread.shutdown(wait=False)

    def label(self, *, wait: bool = False) -> ImageFileLabel | None:
        """Return the label of the complete file, or None if it is not complete yet. StoreFullError if it failed."""
        self._raise_failure()
        if self._ended is None or (not wait and not self._ended.done()):
            return None
        return self._ended.result()

    def abort(self) -> None:
        """Give the file up and delete it."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self.path.unlink(missing_ok=True)

    def _raise_failure(self) -> None:
        while self._pending and self._pending[0].done():
            self._pending.pop(0).result()

    def _create(self) -> None:
        with translated_os_errors(self.path):
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)

    def _write(self, table: int, end: int, stamp: int, buffer: Bytes, size: int, more: bytes) -> None:
        try:
            digest = xxhash.xxh3_64(buffer[:size].data, _seed_of(self._seed, len(self._pieces)))
            digest.update(more)
            head = buffer[:HEAD_BYTES].view("<i8").copy()
            self._pieces.append((end, self.written_bytes, stamp, digest.intdigest(), size, len(more), table, head))
            self._put(buffer[:size].data)
            self._put(memoryview(more))
            if self._unsynced >= _SYNC_BYTES:
                self._sync()
        finally:
            self._free.put(buffer)

    def _put(self, data: memoryview) -> None:
        with translated_os_errors(self.path):
            while data:
                size = os.write(self._file, data)
                data = data[size:]
                self.written_bytes += size
                self._unsynced += size

    def _sync(self) -> None:
        with translated_os_errors(self.path):
            os.fdatasync(self._file)
        if hasattr(os, "posix_fadvise"):  # evidence needs the page cache
            os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_DONTNEED)
        self._unsynced = 0

    def _finish(self) -> ImageFileLabel:
        length = self.written_bytes
        index = np.array(self._pieces, PIECE).tobytes()
        self._put(memoryview(index))
        self._sync()
        os.close(self._file)
        self._file = -1
        return ImageFileLabel(self._number, length, len(self._pieces), xxhash.xxh3_64_intdigest(index, self._seed))


class ImageReader:
    """A complete file. StoreDamagedError if its index is altered.

    Pieces are read past the page cache where the system can: an image is read once, and the copy into the cache takes
    ten times as much of a processor as the reading.
    """

    def __init__(self, folder: Path, identity: str, label: ImageFileLabel) -> None:
        self.path = image_path(folder, label.number)
        self._seed = _seed(identity, self.path)
        with _damaged(self.path):
            self._file = os.open(self.path, os.O_RDONLY)
        self._direct = _opened_directly(self.path)
        try:
            self.pieces: npt.NDArray[Any] = self._index(label)
        except StoreDamagedError:
            self.close()
            raise

    def buffer(self) -> Bytes:
        """Return memory for `piece`, which each thread needs for itself."""
        most = int((self.pieces["size"].astype(np.int64) + self.pieces["more"]).max(initial=0))
        memory = np.empty(most + 3 * _ALIGNED, np.uint8)
        first = -int(memory.ctypes.data) % _ALIGNED
        return memory[first : first + most + 2 * _ALIGNED]

    def piece(self, number: int, buffer: Bytes) -> tuple[Bytes, bytes]:
        """Return a verified piece, in `buffer`, and the bytes of the caller. Any thread may call this."""
        entry = self.pieces[number]
        size, more, offset = int(entry["size"]), int(entry["more"]), int(entry["offset"])
        whole = self._read_piece(offset, size + more, buffer)
        if xxhash.xxh3_64_intdigest(whole.data, _seed_of(self._seed, number)) != int(entry["sum"]):
            raise StoreDamagedError(f"{self.path}: piece {number} does not match its checksum")
        content = whole[:size]
        if offset % _WORD_BYTES:  # tables read words
            content = content.copy()
        return content, whole[size:].tobytes()

    def announce(self, first: int, last: int) -> None:
        """Ask the disk for pieces that are read soon."""
        start, stop = (int(self.pieces["offset"][number]) for number in (first, last))
        if self._direct < 0 and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file, start, stop - start + int(self.pieces["size"][last]), os.POSIX_FADV_WILLNEED)

    def close(self) -> None:
        """Close the file, which leaves the page cache."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(self._file)
        if self._direct >= 0:
            os.close(self._direct)
            self._direct = -1

    def _read_piece(self, offset: int, size: int, buffer: Bytes) -> Bytes:
        """Read bytes of the file into the buffer, and return where they are there."""
        before = offset % _ALIGNED
        whole = buffer[before : before + size]
        aligned = buffer[: -(-(before + size) // _ALIGNED) * _ALIGNED]
        done = self._read_directly(aligned, offset - before) - before if self._direct >= 0 else 0
        if done < size:
            self._read_into(offset + max(0, done), whole[max(0, done) :])
        return whole

    def _read_directly(self, aligned: Bytes, offset: int) -> int:
        """Read bytes past the page cache, as many as one call returns."""
        try:
            return os.preadv(self._direct, [aligned.data], offset)
        except OSError:  # some file systems refuse it only now; an error of the disk comes again
            return 0

    def _index(self, label: ImageFileLabel) -> npt.NDArray[Any]:
        index = self._read(label.length, label.pieces * PIECE.itemsize)
        if xxhash.xxh3_64_intdigest(index.data, self._seed) != label.index_sum:
            raise StoreDamagedError(f"{self.path}: the index does not match its checksum")
        return index.view(PIECE)

    def _read(self, offset: int, size: int) -> Bytes:
        content = np.empty(size, np.uint8)
        self._read_into(offset, content)
        return content

    def _read_into(self, offset: int, content: Bytes) -> None:
        done = 0
        with _damaged(self.path):
            while done < len(content):
                size = os.preadv(self._file, [content[done:].data], offset + done)
                if not size:
                    raise StoreDamagedError(f"{self.path} ends too early")
                done += size


def image_path(folder: Path, number: int) -> Path:
    """Return the path of image file `number`."""
    return folder / f"image-{number}"


def _seed(identity: str, path: Path) -> int:
    return xxhash.xxh3_64_intdigest(f"{identity}/{path.name}".encode())


def _seed_of(seed: int, piece: int) -> int:
    return (seed + 1 + piece) & 0xFFFFFFFFFFFFFFFF


def _opened_directly(path: Path) -> int:
    """Return a descriptor that reads past the page cache; -1 if the system or the file system has none."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECT) if hasattr(os, "O_DIRECT") else -1
    except OSError:
        return -1


@contextmanager
def _damaged(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreDamagedError(f"{path} cannot be read: {error}") from error
