"""Events: what a filter, a crawl or the service did, handed to observers that count, log or draw.

All three emit the same events: a batch that was done and where its time went, the verdict on each page, removals,
index sizes, problems.
Invariant: an observer never delays or stops the work. It is called after the work, in the thread that did it, and must
not block; an exception that it raises is logged, and the work goes on.
Source: the shape of `stamina.instrumentation`: frozen values, and observers behind one class.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dedup_service.core.index import CellStatistics, IndexStatistics
from dedup_service.core.verdict import Verdict

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEvent:
    """A step finished a batch, durably.

    Attributes:
        step: `fingerprint` or `decide`.
        records: Input records in the batch.
        seconds: Time by part of the work (`poll`, `prepare`, `decide`, `commit`, …) since the previous batch.
        verdicts: Number of pages by verdict.
        rejected: Records that are not pages.
        rejections: Where one of them is, and why: the first of each kind in a minute.
        repeated: Records that were delivered before.
        sequence: Last record of the log that was decided, or appended.
        entries: Kept pages in the index.
        expired: Kept pages that expired, by reason (`count`, `age`).
        lag: Records not yet processed, by partition (`pages-0`), as last measured; see `runtime.kafka.monitor`.
    """

    step: str
    records: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    verdicts: Mapping[str, int] = field(default_factory=dict)
    rejected: int = 0
    rejections: Sequence[str] = ()
    repeated: int = 0
    sequence: int | None = None
    entries: int | None = None
    expired: Mapping[str, int] = field(default_factory=dict)
    lag: Mapping[str, int] = field(default_factory=dict)


class PageDecided(NamedTuple):
    """A page was decided. A named tuple, because one is made for every page.

    Attributes:
        verdict: The verdict on the page.
        title: Its title, "" if it has none.
        original: Sequence of the page that the verdict names, or None.
    """

    verdict: Verdict
    title: str
    original: int | None = None


@dataclass(frozen=True, slots=True)
class RemovalEvent:
    """A kept page was removed from the index without an update that replaces it.

    Attributes:
        kind: `retraction` or `correction`.
        url: The address that was named.
    """

    kind: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEvent:
    """Index sizes were sampled; emitted every few seconds by the thread that decides.

    Attributes:
        entries: Kept pages.
        channels: Statistics of the block index of each channel.
        cells: Statistics of the cell index; None if they are unknown.
        memory: Bytes of memory by structure (`cells`, `sieves`, `blocks_words`, `urls`, …).
    """

    entries: int
    channels: Mapping[str, IndexStatistics] = field(default_factory=dict)
    cells: CellStatistics | None = None
    memory: Mapping[str, int] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Memory of all structures."""
        return sum(self.memory.values())


@dataclass(frozen=True, slots=True)
class RestoreEvent:
    """Progress of a restore.

    Attributes:
        messages: Messages of the log that were applied so far; each has one record or many.
        total: Messages to apply.
        seconds: Time since the restore began.
        done: Whether the restore is complete.
        counts: Of all that the log had before, by verdict and by other names; {} if this process does not decide.
    """

    messages: int
    total: int
    seconds: float
    done: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProblemEvent:
    """A problem occurred, and the work continued.

    Attributes:
        step: The step in which it occurred.
        kind: A short name to count by (`transaction_lost`, `expired`, …).
        text: The problem in words.
        count: Number of occurrences.
    """

    step: str
    kind: str
    text: str
    count: int = 1


def faults_in(verdicts: Iterable[Verdict]) -> list[ProblemEvent]:
    """Return a problem, `fault`, for each page that is undecided because the native core failed on it."""
    return [ProblemEvent("decide", "fault", f"{one.url}: {one.reason}") for one in verdicts if one.is_fault]


class Observer:
    """Receives events. Override the methods of the events that you want; the others do nothing.

    Methods are called in the thread that does the work and must not block.

    Example:
        ```python
        class Counter(Observer):
            duplicates = 0

            def decided(self, pages):
                self.duplicates += sum(page.verdict.kind is VerdictKind.DUPLICATE for page in pages)
        ```
    """

    def batch(self, event: BatchEvent) -> None:
        """Called after a batch, once it is committed."""

    def decided(self, pages: Sequence[PageDecided]) -> None:
        """Called with the pages of a batch, in their order; repeated deliveries are left out."""

    def removed(self, event: RemovalEvent) -> None:
        """Called after a kept page was removed from the index."""

    def index(self, event: IndexEvent) -> None:
        """Called with index sizes."""

    def restore(self, event: RestoreEvent) -> None:
        """Called with the progress of a restore."""

    def problem(self, event: ProblemEvent) -> None:
        """Called after a problem that did not stop the work."""


class Observers(Observer):
    """Several observers as one. An exception in one of them stops neither the others nor the work.

    False if there are no observers, so that the caller can skip assembling events.
    """

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self._observers = tuple(observers)

    def __bool__(self) -> bool:
        return any(self._observers)

    def add(self, *observers: Observer) -> None:
        """Call `observers`, too, from the next event on."""
        self._observers += observers

    def discard(self, *observers: Observer) -> None:
        """Call `observers` no more."""
        self._observers = tuple(observer for observer in self._observers if observer not in observers)

    def batch(self, event: BatchEvent) -> None:
        """Call `batch` of each observer."""
        self._notify(lambda observer: observer.batch(event))

    def decided(self, pages: Sequence[PageDecided]) -> None:
        """Call `decided` of each observer, unless `pages` is empty."""
        if pages:
            self._notify(lambda observer: observer.decided(pages))

    def removed(self, event: RemovalEvent) -> None:
        """Call `removed` of each observer."""
        self._notify(lambda observer: observer.removed(event))

    def index(self, event: IndexEvent) -> None:
        """Call `index` of each observer."""
        self._notify(lambda observer: observer.index(event))

    def restore(self, event: RestoreEvent) -> None:
        """Call `restore` of each observer."""
        self._notify(lambda observer: observer.restore(event))

    def problem(self, event: ProblemEvent) -> None:
        """Call `problem` of each observer."""
        self._notify(lambda observer: observer.problem(event))

    def _notify(self, call: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                call(observer)
            except Exception:
                _LOG.exception("an observer failed; the stream goes on")
