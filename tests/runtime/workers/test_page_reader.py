"""Pages are read again in a worker process, whatever they do to it."""

import multiprocessing
import os
import threading
from pathlib import Path

import pytest

from dedup_service.core.page import Page
from dedup_service.runtime.readers.record import Extract
from dedup_service.runtime.workers.page_reader import PageReader
from dedup_service.runtime.workers.pool import WorkersError
from dedup_service.runtime.workers.preparation import BadRecord
from tests.hangs import HANG_S, wait_until
from tests.runtime.workers.records import EndlessLine, Killer, WorkerRecord, page_of

pytestmark = pytest.mark.slow


class Telling(WorkerRecord):
    """A record whose text is the process that extracts it."""

    def page(self, extract: Extract) -> Page:
        """Extract something, and tell where."""
        return page_of(f"{extract('<p>a text</p>', None).text} {os.getpid()}")


class Broken(WorkerRecord):
    """A record that raises an error that nobody expects."""

    def page(self, extract: Extract) -> Page:
        raise AttributeError("no such thing")


def test_a_page_that_is_read_again_cannot_harm_the_process_that_asks() -> None:
    """Extraction, a death, an endless computation and an error happen in the worker; the next page is read."""
    reader = PageReader(timeout_s=2)
    before = set(multiprocessing.active_children())
    try:
        told = reader.page_of(Telling())
        assert isinstance(told, Page)
        assert told.text.startswith("a text ")
        assert int(told.text.split()[-1]) != os.getpid()
        died, endless, broken = (reader.page_of(record) for record in (Killer(), EndlessLine(2), Broken()))
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
    reader, errors = PageReader(timeout_s=HANG_S), []
    reader.page_of(Telling())

    def ask() -> None:
        try:
            reader.page_of(EndlessLine(1))
        except WorkersError as error:
            errors.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    (worker,) = set(multiprocessing.active_children()) - before
    used = processor_s(worker.pid)
    wait_until(lambda: processor_s(worker.pid) > used)
    reader.close()
    thread.join(HANG_S)
    assert len(errors) == 1


def processor_s(pid: int | None) -> int:
    """Return the processor time that a process has used, in clock ticks."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])
