"""What a filter tells whoever watches it: facts, after the deed, to observers that count, log and draw.

The embedded filter, a crawl and the service tell the same facts: what a batch did and where its time went, what was
said of each page, what left the index, how the index stands, what went wrong.
Invariant: an observer is never in the way. It is called from the thread that did the deed, must not wait, and what it
raises is logged and nothing more.
Source: the shape is stamina's (`stamina.instrumentation`): facts as frozen values, observers behind one Protocol.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from dedup_service.core.index import IndexStatistics
from dedup_service.core.verdict import Verdict

__all__ = [
    "BatchEvent",
    "IndexEvent",
    "NullObserver",
    "Observer",
    "Observers",
    "PageDecided",
    "ProblemEvent",
    "RemovalEvent",
    "RestoreEvent",
]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEvent:
    """A batch that a step has done, durably.

    step: fingerprint or decide. records: input records in it. seconds: by part of the work (`poll`, `prepare`,
    `decide`, `commit`, …), since the batch before. verdicts: outcomes by verdict. rejected: records that are no pages.
    repeated: input records met again. sequence: last record of the log that was decided, or appended.
    entries: kept pages in the index. lag: records not done yet by partition ("pages-0").
    """

    step: str
    records: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    verdicts: Mapping[str, int] = field(default_factory=dict)
    rejected: int = 0
    repeated: int = 0
    sequence: int | None = None
    entries: int | None = None
    lag: Mapping[str, int] = field(default_factory=dict)


class PageDecided(NamedTuple):
    """A page that was decided. A tuple, because one is made for every page.

    original: sequence of the page that the verdict names, or None.
    """

    verdict: Verdict
    title: str
    original: int | None = None


@dataclass(frozen=True, slots=True)
class RemovalEvent:
    """A kept page left, and no update took its place. kind: `retraction` or `correction`. url: what was asked for."""

    kind: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEvent:
    """How the indexes stand, told every few seconds by the thread that decides.

    channels: block index by channel. keys: entries of the index of keys, and its bytes; None where the rule has none.
    """

    entries: int
    channels: Mapping[str, IndexStatistics] = field(default_factory=dict)
    keys: tuple[int, int] | None = None

    @property
    def size_bytes(self) -> int:
        """Memory reserved for all of them."""
        return sum(channel.bytes for channel in self.channels.values()) + (self.keys or (0, 0))[1]


@dataclass(frozen=True, slots=True)
class RestoreEvent:
    """How far a restore has come. records: applied so far; total: in all; seconds: since it began."""

    records: int
    total: int
    seconds: float
    done: bool = False


@dataclass(frozen=True, slots=True)
class ProblemEvent:
    """What was survived. kind: a short name to count by (`transaction_lost`, `expired`, …). count: how many of them."""

    step: str
    kind: str
    text: str
    count: int = 1


class Observer(Protocol):
    """Whoever watches."""

    def batch(self, fact: BatchEvent) -> None:
        """A batch was done: committed, where there is something to commit."""
        ...

    def decided(self, pages: Sequence[PageDecided]) -> None:
        """Pages were decided, in this order, each for the first time."""
        ...

    def removed(self, fact: RemovalEvent) -> None:
        """A kept page left the index."""
        ...

    def index(self, fact: IndexEvent) -> None:
        """The indexes stand so."""
        ...

    def restore(self, fact: RestoreEvent) -> None:
        """A restore went on."""
        ...

    def problem(self, fact: ProblemEvent) -> None:
        """A problem was survived."""
        ...


class NullObserver:
    """An observer that heeds nothing; whoever wants some of the facts overrides their methods."""

    def batch(self, fact: BatchEvent) -> None:
        """Not heeded."""

    def decided(self, pages: Sequence[PageDecided]) -> None:
        """Not heeded."""

    def removed(self, fact: RemovalEvent) -> None:
        """Not heeded."""

    def index(self, fact: IndexEvent) -> None:
        """Not heeded."""

    def restore(self, fact: RestoreEvent) -> None:
        """Not heeded."""

    def problem(self, fact: ProblemEvent) -> None:
        """Not heeded."""


class Observers:
    """Several observers as one; what one of them raises stops neither the others nor the stream.

    False where there are none: then nobody need put together what they would be told.
    """

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self._observers = tuple(observers)

    def __bool__(self) -> bool:
        return bool(self._observers)

    def batch(self, fact: BatchEvent) -> None:
        """Tell all of them."""
        self._tell(lambda observer: observer.batch(fact))

    def decided(self, pages: Sequence[PageDecided]) -> None:
        """Tell all of them, unless there is nothing to tell."""
        if pages:
            self._tell(lambda observer: observer.decided(pages))

    def removed(self, fact: RemovalEvent) -> None:
        """Tell all of them."""
        self._tell(lambda observer: observer.removed(fact))

    def index(self, fact: IndexEvent) -> None:
        """Tell all of them."""
        self._tell(lambda observer: observer.index(fact))

    def restore(self, fact: RestoreEvent) -> None:
        """Tell all of them."""
        self._tell(lambda observer: observer.restore(fact))

    def problem(self, fact: ProblemEvent) -> None:
        """Tell all of them."""
        self._tell(lambda observer: observer.problem(fact))

    def _tell(self, tell: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                tell(observer)
            except Exception:
                _LOG.exception("an observer failed; the stream goes on")
