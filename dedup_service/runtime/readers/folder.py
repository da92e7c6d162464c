"""Read a folder of HTML files, recursively, in the order of the relative paths; links are not followed.

A folder may be the mirror of a stranger's site, and may change while it is read. Each folder and file is therefore
opened by its name in the open folder above it, without following a link (`O_NOFOLLOW`), and without waiting for the
other end of a FIFO (`O_NONBLOCK`); what was opened says whether it is a regular file. Links, FIFOs, sockets and devices
are bad records, and so are folders that cannot be read.

The id of a file is its relative path with forward slashes; its URL is a prefix and that path, percent-encoded. With the
default prefix `file:///` the URL does not depend on where the folder is; with `https://`, a mirror whose top folders
are host names gets its Web addresses back.
"""

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.core.page import Page
from dedup_service.core.size_limits import MAX_PAGE_SIZE
from dedup_service.runtime.readers.record import Extract, Mark, page_at

DEFAULT_PREFIX = "file:///"
MAX_DEPTH = 100
"""Folders in folders; one descriptor is open for each level."""

A_LINK = "it is a link, and links are not followed"
NOT_A_FILE = "it is not a regular file"
SUFFIXES = frozenset({".html", ".htm", ".xhtml"})


@dataclass(frozen=True, slots=True)
class HtmlFile:
    """One file.

    relative: path under the folder, with forward slashes. problem: why the file could not be read, or None.
    raw: its bytes, only the beginning of a file over the page limit.
    """

    number: int
    relative: str
    raw: bytes
    prefix: str = DEFAULT_PREFIX
    problem: str | None = None

    @property
    def mark(self) -> Mark:
        """The next file."""
        return Mark(self.number, self.relative)

    @property
    def place(self) -> str:
        """The relative path."""
        return self.relative

    @property
    def url(self) -> str:
        """Prefix and percent-encoded path."""
        return self.prefix + quote(self.relative.encode("utf-8", "surrogateescape"))

    @property
    def identity(self) -> bytes:
        """Path and bytes: the same content under another path is another delivery."""
        return self.relative.encode("utf-8", "surrogateescape") + b"\0" + self.raw

    def page(self, extract: Extract) -> Page:
        """Return the page; RecordError if the file could not be read."""
        if self.problem is not None:
            raise RecordError(f"the file cannot be read: {self.problem}")
        name = self.relative.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return page_at(extract(self.raw, None), self.url, name)

    def text_page(self) -> Page | None:
        """Return None: its text has to be extracted."""
        return None

    def unread(self) -> Page:
        """Return the page without its content; RecordError if the file could not be read."""
        return self.page(lambda _html, _declared: Extraction())


def read_folder(
    folder: Path, prefix: str = DEFAULT_PREFIX, *, above: str = "", after: Mark | None = None
) -> Iterator[HtmlFile]:
    """Yield the HTML files under `folder` in the order of their relative paths, and what was skipped as bad records.

    `folder` itself may be a link: the caller named it. above: what all relative paths begin with, as in "a.example/".
    after: begin behind that file, or behind so many, which are listed and not read.
    """
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    first, behind, skipped = (1, "", 0) if after is None else (after.number + 1, *place_behind(after, above))
    for number, (below, found) in enumerate(_files(top, path_order(behind), skipped), first):
        relative = above + below
        if isinstance(found, bytes):
            yield HtmlFile(number, relative, found, prefix)
        else:
            yield HtmlFile(number, relative, b"", prefix, problem=found)


def read_file(stream: BinaryIO, name: str, prefix: str = DEFAULT_PREFIX) -> HtmlFile:
    """Return one HTML file that was given by itself, as if a folder had it alone."""
    return HtmlFile(1, name, stream.read(MAX_PAGE_SIZE + 1), prefix)


def place_behind(mark: Mark, above: str) -> tuple[str, int]:
    """Return behind which relative path to begin, "" for none, and behind how many files."""
    return ("", mark.position) if isinstance(mark.position, int) else (mark.position.removeprefix(above), 0)


def path_order(relative: str) -> list[str]:
    """Return what relative paths are sorted by: all that is in a folder stands together, at the folder's name.

    >>> sorted(["a.html", "a/b.html", "a-b.html"], key=path_order)
    ['a/b.html', 'a-b.html', 'a.html']
    """
    return relative.split("/")


def open_regular(name: str, folder: int) -> int:
    """Return a descriptor of the regular file `name` in the open folder; OSError if it is anything else."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, NOT_A_FILE)


def _files(top: int, behind: list[str], skipped: int) -> Iterator[tuple[str, bytes | str]]:
    """Yield (relative path, the beginning of the file or why there is none) behind a path, but the first `skipped`.

    Closes `top`.

    Keeps the names of one folder for each level, so even millions of files need little memory.
    """
    levels: list[tuple[str, int, Iterator[os.DirEntry[str]]]] = []
    try:
        levels.append(("", top, iter(_entries(top))))
        while levels:
            above, folder, entries = levels[-1]
            entry = next(entries, None)
            if entry is None:
                os.close(levels.pop()[1])
                continue
            relative = above + entry.name
            place = path_order(relative)
            if place <= behind and place != behind[: len(place)]:
                continue
            found = _look(entry, folder, len(levels), read=place > behind and not skipped)
            if isinstance(found, tuple):
                levels.append((f"{relative}/", *found))
            elif found is not None and place > behind:
                if not skipped:
                    yield relative, found
                skipped = max(skipped - 1, 0)
    finally:
        for _, folder, _ in levels:
            os.close(folder)


def _entries(folder: int) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as listing:
        return sorted(listing, key=lambda entry: entry.name)


def _look(
    entry: os.DirEntry[str], folder: int, depth: int, *, read: bool
) -> tuple[int, Iterator[os.DirEntry[str]]] | bytes | str | None:
    """Return a folder, open, with what is in it; or the beginning of a file; or why not.

    read: False gives b"" for a file, which is not opened.
    """
    try:
        if not entry.is_dir(follow_symlinks=False):
            return _content(entry, folder, read=read)
        if depth >= MAX_DEPTH:
            return f"it is more than {MAX_DEPTH} folders deep"
        return _listed(entry.name, folder)
    except OSError as error:
        return _reason(error)


def _listed(name: str, folder: int) -> tuple[int, Iterator[os.DirEntry[str]]]:
    below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        return below, iter(_entries(below))
    except BaseException:
        os.close(below)
        raise


def _content(entry: os.DirEntry[str], folder: int, *, read: bool) -> bytes | str | None:
    """Return the beginning of an HTML file, why the entry is skipped, or None if it is another kind of file."""
    if entry.is_symlink():
        return A_LINK
    if not entry.is_file(follow_symlinks=False):
        return NOT_A_FILE
    if Path(entry.name).suffix.lower() not in SUFFIXES:
        return None
    if not read:
        return b""
    with os.fdopen(open_regular(entry.name, folder), "rb") as stream:
        return stream.read(MAX_PAGE_SIZE + 1)


def _reason(error: OSError) -> str:
    return A_LINK if error.errno == errno.ELOOP else error.strerror or str(error)
