"""Packed bytes: gzip and zstd, recognised by their first bytes, whatever the name of the file is.

There may be several members or frames, one after the other. Input that ends inside of one raises EOFError, after what
could be unpacked.
"""

import gzip
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import BinaryIO, cast

import zstandard

_WINDOW = 1 << 31
"""The largest that zstd makes (--long=31): a window takes memory as it fills."""

_SLICE = 1 << 14
"""Packed bytes that are unpacked at once: zstd has no limit on its output, and four bytes may stand for 128 KiB."""

_STEP = 1 << 20
"""Bytes that gzip may unpack at once."""

Chunks = Iterator[bytes | None]
"""Bytes as they come; None whenever the next ones have not arrived yet."""


def unpacked(chunks: Chunks) -> Chunks:
    """Yield what is in `chunks`, packed or not.

    >>> list(unpacked(iter([gzip.compress(b"one"), None, gzip.compress(b"two")])))
    [b'one', None, b'two']
    """
    head = b""
    for chunk in chunks:
        if chunk is None:
            yield None
            continue
        head += chunk
        if not any(len(head) < len(magic) and magic.startswith(head) for magic in _UNPACKERS):
            break
    found = chain([head] if head else [], chunks)
    unpack = next((unpack for magic, unpack in _UNPACKERS.items() if head.startswith(magic)), None)
    yield from found if unpack is None else unpack(found)


def is_packed(head: bytes) -> bool:
    """Return whether a file with these first bytes is packed."""
    return head.startswith(tuple(_UNPACKERS))


def _gunzipped(chunks: Chunks) -> Chunks:
    member = None
    for data in _slices(chunks):
        if data is None:
            yield None
            continue
        rest, is_full = data, False
        while rest or is_full:
            if member is None:
                rest = rest.lstrip(b"\0")  # padding, as tapes have it
                if not rest:
                    break
                member = zlib.decompressobj(16 + zlib.MAX_WBITS)
            plain = member.decompress(rest, _STEP)
            if plain:
                yield plain
            is_full = len(plain) == _STEP  # more may come of what it has
            rest = member.unconsumed_tail
            if member.eof:
                rest, member, is_full = member.unused_data, None, False
    if member is not None:
        raise EOFError("the packed file ends too early")


def _unzstded(chunks: Chunks) -> Chunks:
    frame = None
    for data in _slices(chunks):
        if data is None:
            yield None
            continue
        rest = data
        while rest:
            if frame is None:
                frame = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
            plain = frame.decompress(rest)
            if plain:
                yield plain
            rest, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError("the packed file ends too early")


def _slices(chunks: Chunks) -> Chunks:
    for chunk in chunks:
        if chunk is None:
            yield None
        else:
            yield from (chunk[start : start + _SLICE] for start in range(0, len(chunk), _SLICE))


_UNPACKERS: dict[bytes, Callable[[Chunks], Chunks]] = {b"\x1f\x8b": _gunzipped, b"\x28\xb5\x2f\xfd": _unzstded}
"""By the first bytes of what they unpack."""


def created(name: str, *, append: bool = False) -> BinaryIO:
    """Create a file, or empty it, and return what packs what is written to it if its name says so.

    append: what is in the file stays.
    """
    if name.endswith(".gz"):
        return cast("BinaryIO", gzip.open(name, "ab" if append else "wb"))
    if name.endswith(".zst"):
        return cast("BinaryIO", zstandard.open(name, "ab" if append else "wb"))
    return open(name, "ab" if append else "wb")  # noqa: PTH123 - as the others
