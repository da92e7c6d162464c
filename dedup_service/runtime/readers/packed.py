"""Packed lines: gzip and zstd files as streams of what is in them.

A file may have several members or frames, one after the other. One that ends inside of a frame raises EOFError, after
what could be unpacked.
"""

import gzip
import io
from typing import BinaryIO, cast

import zstandard

PACKINGS = (".gz", ".zst")

_WINDOW = 1 << 31
"""The largest that zstd makes (--long=31): a window takes memory as it fills."""

READ_BYTES = 1 << 18
"""Of a packed file, at once."""

_SLICE = 1 << 14
"""Packed bytes that are unpacked at once: zstd has no limit on its output, and four bytes may stand for 128 KiB."""


def unpacked(stream: BinaryIO, name: str) -> BinaryIO:
    """Return what is in a file of this name; `stream` itself if it is not packed."""
    if not name.endswith(PACKINGS):
        return stream
    if name.endswith(".gz"):
        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    return cast("BinaryIO", io.BufferedReader(_ZstdFile(stream), 1 << 20))


def created(name: str, *, append: bool = False) -> BinaryIO:
    """Create a file, or empty it, and return what packs what is written to it if its name says so.

    append: what is in the file stays.
    """
    if name.endswith(".gz"):
        return cast("BinaryIO", gzip.open(name, "ab" if append else "wb"))
    if name.endswith(".zst"):
        return cast("BinaryIO", zstandard.open(name, "ab" if append else "wb"))
    return open(name, "ab" if append else "wb")  # noqa: PTH123 - as the others


class _ZstdFile(io.RawIOBase):
    """The content of zstd frames, read forwards only."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._packed = b""
        self._plain = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        """Fill a buffer; 0 at the end."""
        while not self._plain:
            if not self._packed:
                self._packed = self._stream.read(_SLICE)
                if not self._packed:
                    if self._frame is not None:
                        raise EOFError("the packed file ends too early")
                    return 0
            if self._frame is None:
                self._frame = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
            self._plain, self._packed = memoryview(self._frame.decompress(self._packed)), b""
            if self._frame.eof:
                self._packed, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._plain))
        buffer[:count] = self._plain[:count]
        self._plain = self._plain[count:]
        return count
