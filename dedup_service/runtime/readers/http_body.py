"""Decode the body of an archived HTTP response: chunked transfer, then its content encodings, in bounded memory.

How: each coding is a generator of pieces over another one, and every decoder has a limit on what it may return at once.
The sum is cut at a limit, so a body that decodes to terabytes costs no more than one that decodes to the limit.

Many archives hold bodies that were decoded when they were stored, under the headers of the original. A body that does
not decode is therefore returned as it is if it looks like text.

Source: RFC 9112, section 7.1 (chunked); RFC 9110, section 8.4.1 (gzip, deflate); RFC 7932 (br); RFC 8878 and 9659
(zstd); WHATWG, MIME Sniffing, section 3 (binary data bytes).
"""

import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

import brotli
import zstandard

READ_BYTES = 2**16
STEP_BYTES = 2**20
"""What a decoder may return at once."""

MAX_CODINGS = 4
MAX_CHUNK_HEAD = 4096
ZSTD_SLICE = 256
"""Bytes given to zstd at once: it has no limit on its output, and four bytes may stand for 128 KiB."""

ZSTD_WINDOW = 8 * 2**20  # RFC 9659: the largest window that an HTTP recipient has to accept
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
GZIP_MAGIC = b"\x1f\x8b"

_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")

Pieces = Iterator[bytes]


class BodyError(Exception):
    """The body does not decode, and does not look like text."""


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; b"" at the end."""
        ...


def decoded_body(
    open_body: Callable[[], Readable], *, transfer: str = "", encodings: str = "", limit_bytes: int, cut: bool = False
) -> bytes:
    """Return the decoded body, or its first `limit_bytes`.

    Args:
        open_body: Opens the body at its beginning; called once more for a body that does not decode.
        transfer: Value of Transfer-Encoding.
        encodings: Value of Content-Encoding: codings in the order in which they were applied.
        limit_bytes: Decoding ends at this size.
        cut: The archive states that the body was cut off (WARC-Truncated); what there is of it is returned.

    Raises:
        BodyError: The body does not decode and is no text; or it ends too early, and `cut` is False.
    """
    chunked = is_chunked(transfer)
    try:
        return _collected(_decoded(open_body(), chunked, _tokens(encodings)), limit_bytes, cut=cut)
    except (_EndsEarlyError, _UndecodableError, zlib.error, brotli.error, zstandard.ZstdError) as error:
        if encodings:
            with suppress(_UndecodableError):  # of its chunks
                stored = _collected(_decoded(open_body(), chunked, []), limit_bytes, cut=True)
                if _looks_like_text(stored):
                    return stored
        codings = ", ".join(filter(None, (transfer, encodings)))
        raise BodyError(f"the body does not decode as {codings}: {error}") from None


def is_chunked(transfer: str) -> bool:
    """Whether a body with this Transfer-Encoding was sent in chunks."""
    return "chunked" in _tokens(transfer)


def entity_pieces(body: Readable, transfer: str) -> Pieces:
    """Yield the entity body: without its chunks, its content codings left as they are. BodyError if it is broken."""
    try:
        yield from _dechunked(body) if is_chunked(transfer) else _read(body)
    except (_EndsEarlyError, _UndecodableError) as error:
        raise BodyError(f"the body does not decode as {transfer}: {error}") from None


class _EndsEarlyError(Exception):
    """The input of a decoder ends before its data does."""


class _UndecodableError(Exception):
    """A coding that is broken or not known."""


def _tokens(header: str) -> list[str]:
    return [token for token in (part.strip().lower() for part in header.split(",")) if token not in {"", "identity"}]


def _collected(pieces: Pieces, limit_bytes: int, *, cut: bool) -> bytes:
    held, size = [], 0
    try:
        for piece in pieces:
            held.append(piece)
            size += len(piece)
            if size >= limit_bytes:
                break
    except _EndsEarlyError:
        if not cut:
            raise
    return b"".join(held)[:limit_bytes]


def _decoded(stream: Readable, chunked: bool, encodings: list[str]) -> Pieces:
    if len(encodings) > MAX_CODINGS:
        raise _UndecodableError(f"{len(encodings)} codings, at most {MAX_CODINGS} are undone")
    pieces = _dechunked(stream) if chunked else _read(stream)
    for name in reversed(encodings):
        decoder = _DECODERS.get(name)
        if decoder is None:
            raise _UndecodableError(f"{name!r} is not a known content encoding")
        pieces = decoder(pieces)
    return pieces


def _read(stream: Readable) -> Pieces:
    while piece := stream.read(READ_BYTES):
        yield piece


def _dechunked(stream: Readable) -> Pieces:
    """Undo chunked transfer. A body without a first chunk was stored without chunks."""
    held = stream.read(READ_BYTES)
    if not _CHUNK_SIZE.match(held):
        if held:
            yield held
        yield from _read(stream)
        return
    while True:
        while b"\n" not in held[2:MAX_CHUNK_HEAD] and (more := stream.read(READ_BYTES)):
            held += more
        found = _CHUNK_SIZE.match(held, 2 if held.startswith(b"\r\n") else 0)
        if found is None:
            if len(held) < MAX_CHUNK_HEAD and b"\n" not in held[2:]:
                raise _EndsEarlyError("it ends before its last chunk")
            raise _UndecodableError("a chunk does not begin with its size")
        size, held = int(found[1], 16), held[found.end() :]
        if size == 0:
            return
        while size:
            held = held or stream.read(READ_BYTES)
            if not held:
                raise _EndsEarlyError("it ends in the middle of a chunk")
            piece, held = held[:size], held[size:]
            size -= len(piece)
            yield piece


def _ungzipped(pieces: Pieces) -> Pieces:
    return _inflated(pieces, lambda _: zlib.decompressobj(16 + zlib.MAX_WBITS))


def _undeflated(pieces: Pieces) -> Pieces:
    """Undo deflate, with its zlib wrapper or, as some servers send it, without."""

    def decoder(start: bytes) -> "zlib._Decompress":
        wrapped = start[0] & 0x8F == 8 and (len(start) < 2 or (start[0] << 8 | start[1]) % 31 == 0)
        return zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)

    return _inflated(pieces, decoder)


def _inflated(pieces: Pieces, new: "Callable[[bytes], zlib._Decompress]") -> Pieces:
    """Undo deflate: several gzip members, one after the other, are one body; other data after the end is ignored."""
    decoder, members = None, 0
    for piece in pieces:
        data = piece
        while data or decoder is not None:
            if decoder is None:
                if members and not data.startswith(GZIP_MAGIC[: len(data)]):
                    return
                decoder, members = new(data), members + 1
            out = decoder.decompress(data, STEP_BYTES)
            if out:
                yield out
            if decoder.eof:
                data, decoder = decoder.unused_data, None
            else:
                data = decoder.unconsumed_tail
                if not data and len(out) < STEP_BYTES:
                    break
    if decoder is not None or not members:
        raise _EndsEarlyError("it ends too early")


def _unbrotlied(pieces: Pieces) -> Pieces:
    decoder = brotli.Decompressor()
    for piece in pieces:
        data = piece
        while True:
            out = decoder.process(data, output_buffer_limit=STEP_BYTES)
            if out:
                yield out
            if decoder.is_finished():
                return
            if not out and decoder.can_accept_more_data():  # it may accept more while output is left
                break
            data = b""
    raise _EndsEarlyError("it ends too early")


def _unzstded(pieces: Pieces) -> Pieces:
    """Undo zstd: several frames are one body."""
    decoder, frames = None, 0
    for piece in pieces:
        for start in range(0, len(piece), ZSTD_SLICE):
            data = piece[start : start + ZSTD_SLICE]
            while data:
                if decoder is None:
                    if frames and not data.startswith(ZSTD_MAGIC[: len(data)]):
                        return
                    decoder = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj()
                    frames += 1
                out = decoder.decompress(data)
                if out:
                    yield out
                data = b""
                if decoder.eof:
                    data, decoder = decoder.unused_data, None
    if decoder is not None or not frames:
        raise _EndsEarlyError("it ends too early")


_DECODERS: dict[str, Callable[[Pieces], Pieces]] = {
    "gzip": _ungzipped,
    "x-gzip": _ungzipped,
    "deflate": _undeflated,
    "br": _unbrotlied,
    "zstd": _unzstded,
}


def _looks_like_text(body: bytes) -> bool:
    head = body[:512]
    return head.startswith((b"\xfe\xff", b"\xff\xfe")) or not (head.startswith(ZSTD_MAGIC) or _BINARY.search(head))
