"""Pages are read again in a worker process, whatever they do to it."""

import itertools
import multiprocessing
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from dedup_service.core.page import Page
from dedup_service.runtime.readers.jsonlines import JsonLine
from dedup_service.runtime.readers.record import Extract
from dedup_service.runtime.workers.page_reader import PageReader
from dedup_service.runtime.workers.pool import WorkersError
from dedup_service.runtime.workers.preparation import BadRecord

pytestmark = pytest.mark.slow


def page(text: str) -> Page:
    """A page with this text."""
    return Page(url="https://a.example/", canonical_url="https://a.example/", id="a", text=text)


@dataclass(frozen=True, slots=True)
class Telling:
    """A record whose text is the process that extracts it."""

    number: int = 1
    raw: bytes = b""
    place: str = "here"
    identity: bytes = b"telling"

    def page(self, extract: Extract) -> Page:
        """Extract something, and tell where."""
        return page(f"{extract('<p>a text</p>', None).text} {os.getpid()}")

    def text_page(self) -> Page | None:
        """Return None: it goes to a worker process."""
        return None

    def unread(self) -> Page:
        """Return the page without its text."""
        return page("")


class Deadly(Telling):
    """A record that ends its process."""

    def page(self, extract: Extract) -> Page:
        os._exit(9)


class Endless(JsonLine):
    """A line on which native code computes indefinitely, in any process but the one that created it."""

    def __reduce__(self) -> tuple[object, ...]:
        return sum, (itertools.repeat(1),)


class Broken(Telling):
    """A record that raises an error that nobody expects."""

    def page(self, extract: Extract) -> Page:
        raise AttributeError("no such thing")


def test_a_page_that_is_read_again_cannot_harm_the_process_that_asks() -> None:
    """Extraction, a death, an endless computation and an error happen in the worker; the next page is read."""
    reader = PageReader(timeout_s=5)  # a worker may take a second to start
    before = set(multiprocessing.active_children())
    try:
        told = reader.page_of(Telling())
        assert isinstance(told, Page)
        assert told.text.startswith("a text ")
        assert int(told.text.split()[-1]) != os.getpid()
        died, endless, broken = (
            reader.page_of(record)
            for record in (Deadly(), Endless(2, b'{"url": "https://a.example/e", "text": "a text"}'), Broken())
        )
        assert died == BadRecord("not judged: the worker process died over this page, twice")
        assert isinstance(endless, BadRecord)
        assert broken == BadRecord("AttributeError: no such thing")
        assert isinstance(reader.page_of(Telling()), Page)
        assert len(set(multiprocessing.active_children()) - before) == 1
    finally:
        reader.close()


def test_a_reader_that_is_closed_lets_nobody_wait() -> None:
    """A page in progress ends with WorkersError, and so does every later one; no worker starts before the first."""
    before = set(multiprocessing.active_children())
    unused = PageReader()
    unused.close()
    with pytest.raises(WorkersError):
        unused.page_of(Telling())
    assert set(multiprocessing.active_children()) == before
    reader, errors = PageReader(timeout_s=300), []
    reader.page_of(Telling())

    def ask() -> None:
        try:
            reader.page_of(Endless(1, b'{"url": "https://a.example/e", "text": "a text"}'))
        except WorkersError as error:
            errors.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    (worker,) = set(multiprocessing.active_children()) - before
    deadline, used = time.monotonic() + 60, processor_s(worker.pid)
    while processor_s(worker.pid) == used:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    reader.close()
    thread.join(60)
    assert len(errors) == 1


def processor_s(pid: int | None) -> int:
    """Return the processor time that a process has used, in clock ticks."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])
