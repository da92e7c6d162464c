"""Read a folder of HTML files, recursively, in the order of the relative paths.

The id of a file is its relative path with forward slashes; its URL is a prefix and that path, percent-encoded. With the
default prefix `file:///` the URL does not depend on where the folder is; with `https://`, a mirror whose top folders
are host names gets its Web addresses back.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from dedup_service.core.errors import RecordError
from dedup_service.core.page import Page
from dedup_service.core.size_limits import MAX_PAGE_SIZE
from dedup_service.runtime.readers.record import Extract, page_at

__all__ = ["DEFAULT_PREFIX", "HtmlFile", "read_folder"]

DEFAULT_PREFIX = "file:///"
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


def read_folder(folder: Path, prefix: str = DEFAULT_PREFIX) -> Iterator[HtmlFile]:
    """Yield the HTML files under `folder` in the order of their relative paths; links are not followed."""
    for number, path in enumerate(_files(folder), 1):
        relative = path.relative_to(folder).as_posix()
        try:
            with path.open("rb") as stream:
                yield HtmlFile(number, relative, stream.read(MAX_PAGE_SIZE + 1), prefix)
        except OSError as error:
            yield HtmlFile(number, relative, b"", prefix, problem=error.strerror or str(error))


def _files(folder: Path) -> Iterator[Path]:
    """Yield paths. Keeps the names of one folder for each level, so even millions of files need little memory."""
    with os.scandir(folder) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path))
        elif Path(entry.name).suffix.lower() in SUFFIXES and entry.is_file():
            yield Path(entry.path)
