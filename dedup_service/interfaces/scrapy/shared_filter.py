"""One filter and one decision thread for all crawls of a process that have the same state folder.

A folder is open once in a process, so two spiders of a `CrawlerProcess` share what the first one opened; the last one
closes it. Each crawl without a folder has a filter to itself.

Invariant: crawls that share a filter agree on everything that it does: space, rule, bounds of expiry, action
and how long the journal is kept. One that does not agree is refused before its first request, and the message names
the setting.
"""

import threading
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.page import PreparedPage
from dedup_service.core.verdict import Verdict
from dedup_service.interfaces.scrapy.decision_thread import DecisionThread
from dedup_service.interfaces.scrapy.settings import NearDuplicateSettings
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.events import Observer, Observers


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
        with _turn:
            opened = _by_folder.get(folder)
            if opened is None:
                opened = _by_folder[folder] = _Opened(folder, settings)
            else:
                opened.refuse_other(settings)
            return cls(opened, observers)

    def submit(self, prepared: PreparedPage) -> "Future[Verdict]":
        """Queue a page; see `DecisionThread.submit`."""
        return self._opened.thread.submit(prepared)

    def close(self) -> None:
        """Give up the share; the last crawl closes the filter. A second call does nothing."""
        with _turn:
            if self._closed:
                return
            self._closed = True
            self._opened.observers.discard(*self._observers)
            self._opened.leave()


class _Opened:
    """An open filter with its decision thread. folder: None for a filter of one crawl."""

    def __init__(self, folder: Path | None, settings: NearDuplicateSettings) -> None:
        self._folder = folder
        self._settings = settings
        self.users = 0
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

    def leave(self) -> None:
        """Close thread and filter if the last crawl left."""
        self.users -= 1
        if self.users:
            return
        try:
            self.thread.close()
            self.dedup.close()
        finally:
            if self._folder is not None:
                del _by_folder[self._folder]


_turn = threading.Lock()
_by_folder: dict[Path, _Opened] = {}
"""What is open in this process, by resolved path. A folder is locked by the process, so it belongs here."""
