"""One filter and one decision thread for all crawls of a process that have the same state folder.

A folder is open once in a process, so two spiders of a `CrawlerProcess` share what the first one opened; the last one
closes it. Each crawl without a folder has a filter to itself.

Invariant: crawls that share a filter agree on everything that it does: space, rule, bounds of expiry, action
and how long the journal is kept. One that does not agree is refused before its first request, and the message names
the setting.

Group commit: one thread decides all waiting pages with one commit, while the event loop continues.

Goal: a page's record is durable before its verdict is returned, without an fsync for each page.
How: pages queue up while a commit is in progress; the next commit takes all of them.
Invariants: only this thread calls `decide_many`, in the order of the queue. Every future is resolved, with a
verdict or with the error that stopped its batch.
Source: DeWitt et al., "Implementation Techniques for Main Memory Database Systems", SIGMOD 1984 (group
commit).
"""

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.page import PreparedPage
from dedup_service.core.verdict import Verdict
from dedup_service.interfaces.scrapy.settings import NearDuplicateSettings
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.events import Observer, Observers

DecideMany = Callable[[Sequence[PreparedPage]], list[Verdict]]
QueuedPage = tuple[PreparedPage, "Future[Verdict]"]

MAX_BATCH = 256


class DecisionThread:
    """Calls `decide_many` with all waiting pages (256 at most), in one background thread."""

    def __init__(self, decide_many: DecideMany) -> None:
        self._decide_many = decide_many
        self._queue: queue.SimpleQueue[QueuedPage | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="twinsieve-decisions", daemon=True)
        self._thread.start()

    def submit(self, prepared: PreparedPage) -> "Future[Verdict]":
        """Queue a page; the future returns its verdict, or raises what `decide_many` raised."""
        future: Future[Verdict] = Future()
        self._queue.put((prepared, future))
        return future

    def close(self) -> None:
        """Decide the pages queued so far, then end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, last = self._collect(first)
            self._decide(batch)
            if last:
                return

    def _collect(self, first: QueuedPage) -> tuple[list[QueuedPage], bool]:
        """Return `first` with the pages queued behind it, and whether the end of the queue was reached."""
        batch = [first]
        while len(batch) < MAX_BATCH:
            try:
                queued = self._queue.get_nowait()
            except queue.Empty:
                break
            if queued is None:
                return batch, True
            batch.append(queued)
        return batch, False

    def _decide(self, batch: Sequence[QueuedPage]) -> None:
        live = [(page, future) for page, future in batch if future.set_running_or_notify_cancel()]
        if not live:
            return
        try:
            verdicts = self._decide_many([page for page, _ in live])
        except BaseException as error:  # raised where the future is awaited
            for _, future in live:
                future.set_exception(error)
            return
        for (_, future), verdict in zip(live, verdicts, strict=True):
            future.set_result(verdict)


class SharedFilter:
    """A crawl's share of a filter, from `open` to `close`. dedup: the filter."""

    def __init__(self, opened: "_Opened", observers: Iterable[Observer]) -> None:
        self._opened = opened
        self._observers = tuple(observers)
        self._closed = False
        self.dedup = opened.dedup
        opened.users += 1
        opened.observers.add(*self._observers)

    @classmethod
    def open(cls, settings: NearDuplicateSettings, observers: Iterable[Observer] = ()) -> "SharedFilter":
        """Open the state that `settings` names, or share it with another crawl of this process.

        Raises:
            ConfigurationError: Another crawl shares it with another value of a setting.
            StateError: As `NearDuplicateFilter.open`.
        """
        if settings.state is None:
            return cls(_Opened(None, settings), observers)
        folder = settings.state.resolve()
        while True:
            with _turn:
                opened = _by_folder.get(folder)
                if opened is None:
                    opened = _by_folder[folder] = _Opened(folder, settings)
                    return cls(opened, observers)
                if opened.users:
                    opened.refuse_other(settings)
                    return cls(opened, observers)
            opened.closed.wait()

    def submit(self, prepared: PreparedPage) -> "Future[Verdict]":
        """Queue a page; see `DecisionThread.submit`."""
        return self._opened.thread.submit(prepared)

    def close(self) -> None:
        """Give up the share; the last crawl closes the filter. A second call does nothing.

        Closing may take seconds, and only who opens the same folder waits for it.
        """
        with _turn:
            if self._closed:
                return
            self._closed = True
            self._opened.observers.discard(*self._observers)
            self._opened.users -= 1
            last = not self._opened.users
        if last:
            self._opened.close()


class _Opened:
    """An open filter with its decision thread. folder: None for a filter of one crawl."""

    def __init__(self, folder: Path | None, settings: NearDuplicateSettings) -> None:
        self._folder = folder
        self._settings = settings
        self.users = 0
        self.closed = threading.Event()
        self.observers = Observers()
        self.dedup = NearDuplicateFilter.open(
            folder,
            space=settings.space,
            rule=settings.rule,
            keep=settings.keep,
            max_memory_bytes=settings.max_memory_bytes,
            journal_days=settings.journal_days,
            observers=[self.observers],
            bases=settings.bases,
        )
        self.thread = DecisionThread(self.dedup.decide_many)

    def refuse_other(self, settings: NearDuplicateSettings) -> None:
        """Raise ConfigurationError if `settings` ask for another filter than this one."""
        for names, here, given in self._compared(settings):
            if here != given:
                raise ConfigurationError(
                    f"another spider of this process has {names} at {here}, this one at {given}, and both share the "
                    f"state {self._folder}: give both the same, or give one of them another TWINSIEVE_STATE"
                )

    def _compared(self, settings: NearDuplicateSettings) -> list[tuple[str, object, object]]:
        """Return (names of settings, value here, value in `settings`); no rule is the rule of the state."""
        keep = settings.keep
        if keep is None or keep == self._settings.keep:  # the limit on memory may have lowered it since
            keep = self.dedup.keep
        return [
            ("TWINSIEVE_SPACE or TWINSIEVE_IDF", self._settings.space, settings.space),
            ("TWINSIEVE_PROFILE", self.dedup.rule, settings.rule or self.dedup.rule),
            ("TWINSIEVE_KEEP", str(self.dedup.keep), str(keep)),
            ("TWINSIEVE_MAX_MEMORY", self._settings.max_memory_bytes, settings.max_memory_bytes),
            ("TWINSIEVE_ACTION", self._settings.action.value, settings.action.value),
            ("TWINSIEVE_JOURNAL_DAYS", self._settings.journal_days, settings.journal_days),
            ("TWINSIEVE_BASES", self._settings.bases, settings.bases),
        ]

    def close(self) -> None:
        """Close thread and filter, then let the folder be opened again."""
        try:
            self.thread.close()
            self.dedup.close()
        finally:
            with _turn:
                if self._folder is not None:
                    del _by_folder[self._folder]
            self.closed.set()


_turn = threading.Lock()
_by_folder: dict[Path, _Opened] = {}
"""What is open in this process, by resolved path. A folder is locked by the process, so it belongs here."""
