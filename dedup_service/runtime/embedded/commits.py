"""Commits of the kept pages in `pages/`, from time to time, beside the decisions.

A commit makes durable what was appended and removed since the last one, and the rest of the decider's state
(`decider_state.encode_state`), so the next opening applies only the records of the journal after it. The deciding
thread notes what it consists of; a thread writes it, one at a time. The journal has every batch already: a commit that
fails loses nothing.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dedup_service.core.decision.decider import Decider
from dedup_service.runtime.embedded.database import StateDamagedError, StateFullError
from dedup_service.runtime.embedded.evidence import Move
from dedup_service.runtime.embedded.journal import Journal
from dedup_service.runtime.freed_memory import return_freed_memory
from dedup_service.runtime.store.decider_state import encode_state
from dedup_service.runtime.store.errors import StoreDamagedError, StoreFullError
from dedup_service.runtime.store.stored_entries import Finish, Report, StoredEntries

_LOG = logging.getLogger(__name__)

DAMAGED_PAGES = "restore the state folder from a copy, or start a new state folder and filter the same input again"
"""What to do about kept pages that cannot be read, and that the journal cannot build again."""


@contextmanager
def store_errors() -> Iterator[None]:
    """Raise errors of the kept pages as those of a state."""
    try:
        yield
    except StoreFullError as error:
        raise StateFullError(str(error)) from error
    except StoreDamagedError as error:
        raise StateDamagedError(f"{error.problem}: {DAMAGED_PAGES}") from error


class Commits:
    """Commits `entries` as `journal` grows. every: records between two commits."""

    def __init__(self, entries: StoredEntries, journal: Journal, every: int) -> None:
        self._entries = entries
        self._journal = journal
        self._every = every
        self._taken_at = entries.sequence
        self._move = Move(journal, entries)
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def covers(self) -> int:
        """The sequence of the last finished commit; 0 before any."""
        return self._entries.sequence

    def step(self, decider: Decider) -> None:
        """Do a little of what is due: a commit, compaction, deletion of evidence that is committed.

        Raises StateFullError if the disk is full: then the state has to be opened again.
        """
        if self.is_running():
            return
        self._raise_failure()
        with store_errors():
            if self._journal.sequence - self._taken_at >= self._every:
                finish = self._begin(decider)
                self._thread = threading.Thread(target=self._finish, args=(finish,), name="commit")
                self._thread.start()
                return
            self._entries.step()
        self._move.step()

    def take(self, decider: Decider) -> None:
        """Commit the present state, unless the last commit has it, and wait for it; raises as `step`."""
        self.wait()
        self._raise_failure()
        if self._journal.sequence != self._taken_at:
            with store_errors():
                self._begin(decider)()

    def close(self, decider: Decider) -> None:
        """Commit for the last time; raises as `step`."""
        self._raise_failure()
        self.take(decider)

    def compact(self, decider: Decider, report: Report) -> None:
        """Give back the space of all dead rows of the kept pages, and of evidence in the journal; raises as `step`."""
        self.wait()
        self._raise_failure()
        with store_errors():
            self._entries.compact(lambda: self._begin(decider), report)
        while self._move.step():
            pass

    def wait(self) -> None:
        """Wait for a commit that was begun."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _begin(self, decider: Decider) -> Finish:
        journal = self._journal
        state, tail = decider.note_state(), journal.log.tail(journal.sequence)
        # The state is encoded by the thread that writes.
        finish = self._entries.begin_commit(journal.sequence, tail, lambda: encode_state(state()), decider.sizes())
        self._taken_at = journal.sequence
        return finish

    def _finish(self, finish: Finish) -> None:
        try:
            finish()
            return_freed_memory()
        except BaseException as error:
            _LOG.warning("%s: no commit of the kept pages; the journal has them", error)
            self._failure = error

    def is_running(self) -> bool:
        """Whether a commit is under way, which takes memory for a while."""
        if self._thread is not None and not self._thread.is_alive():
            self.wait()
        return self._thread is not None

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise StateFullError(f"the kept pages could not be committed: {self._failure}") from self._failure
