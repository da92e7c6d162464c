"""Inputs at addresses: what is there, streams over them, copies on this disk, HTML files below a prefix.

An object is read as a stream, some blocks ahead; of an archive, which is read again at its broken places, a temporary
copy is made first. A prefix of objects is a folder, and its files come in the order of a folder on a disk.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.size_limits import MAX_PAGE_SIZE
from dedup_service.runtime.addresses import file_system, is_address, translated_errors
from dedup_service.runtime.readers.folder import DEFAULT_PREFIX, SUFFIXES, HtmlFile, path_order, place_behind
from dedup_service.runtime.readers.record import Mark

BLOCK_BYTES = 4 << 20
BLOCKS = 4
"""Of a stream, in memory: the one that is read, the next one, and those before."""

TOGETHER = 16
"""Objects that are read at once: an answer takes some 50 ms however small it is."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is at an address. size_bytes: None if unknown. version: changes when the content does, "" if unknown."""

    is_folder: bool
    size_bytes: int | None
    version: str


def name_of(name: str) -> str:
    """Return the part of an input's name that ends with its extension: a Web address may have a query behind it.

    >>> name_of("https://a.example/pages.jsonl.gz?signature=1"), name_of("s3://bucket/pages.parquet")
    ('/pages.jsonl.gz', 's3://bucket/pages.parquet')
    """
    return urlsplit(name).path if name.startswith(("http://", "https://")) else name


_VERSIONS = ("ETag", "etag", "mtime", "LastModified", "Last-Modified", "last_modified", "Content-MD5", "Digest")
"""What storages call it."""


def look(address: str) -> Found:
    """Return what is at an address. ConfigurationError if there is nothing; AddressUnreachableError."""
    files, path = file_system(address)
    try:
        with translated_errors(address):
            info = files.info(path)
    except FileNotFoundError as error:
        if isinstance(error.__cause__, OSError):  # fsspec calls a server missing that does not answer
            with translated_errors(address):
                raise error.__cause__ from None
        raise ConfigurationError(f"there is nothing at {address}: give the address of a file or folder") from None
    size = info.get("size")
    version = next((str(info[key]) for key in _VERSIONS if info.get(key)), "")
    return Found(info.get("type") == "directory", None if size is None else int(size), version)


def matching(pattern: str) -> list[str]:
    """Return the addresses that a pattern stands for, sorted."""
    files, path = file_system(pattern)
    with translated_errors(pattern):
        return sorted(files.unstrip_protocol(found) for found in files.glob(path))


@contextmanager
def opened(address: str) -> Iterator[BinaryIO]:
    """Open what is at an address as a stream."""
    files, path = file_system(address)
    with translated_errors(address):
        stream = files.open(path, "rb", block_size=BLOCK_BYTES, cache_type="background", cache_options=_CACHE)
    with stream:
        yield cast("BinaryIO", _Translated(stream, address))


_CACHE = {"maxblocks": BLOCKS}


@contextmanager
def on_disk(name: str) -> Iterator[Path]:
    """Return the path of an input, of a copy that is deleted at the end if it is at an address."""
    if not is_address(name):
        yield Path(name)
        return
    files, path = file_system(name)
    with tempfile.TemporaryDirectory(prefix="twinsieve-") as folder:
        copy = Path(folder) / "input"
        with translated_errors(name):
            files.get_file(path, str(copy))
        yield copy


def read_objects(
    address: str, prefix: str = DEFAULT_PREFIX, *, above: str = "", after: Mark | None = None
) -> Iterator[HtmlFile]:
    """Yield the HTML files below an address, as `read_folder` does those of a folder."""
    files, root = file_system(address)
    root = root.rstrip("/") + "/"
    with translated_errors(address):
        found = files.find(root)
    below = sorted((path.removeprefix(root) for path in found), key=path_order)
    number = 0 if after is None else after.number
    wanted = [name for name in below if PurePosixPath(name).suffix.lower() in SUFFIXES]
    if after is not None:
        behind, skipped = place_behind(after, above)
        wanted = [name for name in wanted if path_order(name) > path_order(behind)][skipped:]
    for first in range(0, len(wanted), TOGETHER):
        names = wanted[first : first + TOGETHER]
        for name, content in zip(names, _contents(files, address, [root + name for name in names]), strict=True):
            number += 1
            if isinstance(content, bytes):
                yield HtmlFile(number, above + name, content, prefix)
            else:
                yield HtmlFile(number, above + name, b"", prefix, problem=str(content) or type(content).__name__)


def _contents(files: Any, address: str, paths: Sequence[str]) -> list[bytes | Exception]:
    """Return the beginnings of objects, up to a byte more than a page may have, or why they cannot be read."""
    with translated_errors(address):
        return list(files.cat_ranges(list(paths), 0, MAX_PAGE_SIZE + 1, on_error="return"))


class _Translated:
    """A stream whose errors name its address."""

    def __init__(self, stream: Any, address: str) -> None:
        self._stream, self._address = stream, address

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes."""
        with translated_errors(self._address):
            return bytes(self._stream.read(size))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
