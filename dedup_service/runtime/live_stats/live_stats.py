"""The observer behind every view of the filter: it adds facts up, and says what is new once a second.

How: facts are counted as they come, in the thread that tells them, under a lock that nobody holds for longer than it
takes to copy some counters. What is asked for (`figures`) and what is told live (`tick`) is put together in the thread
that asks.
Invariant: memory is bounded, whatever comes: rings, the most frequent hosts and groups, the newest rows, the latest
messages. Strings of pages are cut when they enter and cleaned when they leave (`cleaning`).
"""

import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dedup_service.core.verdict import Guard, VerdictKind
from dedup_service.runtime.events import BatchEvent, IndexEvent, NullObserver, PageDecided, ProblemEvent, RemovalEvent
from dedup_service.runtime.live_stats.display_safe import MAX_URL, cut, shown
from dedup_service.runtime.live_stats.event_log import Event, EventLog
from dedup_service.runtime.live_stats.latency_histogram import LatencyHistogram
from dedup_service.runtime.live_stats.newest import NAMING, DuplicateRow, Newest
from dedup_service.runtime.live_stats.recheck import RecheckResult, Sampler
from dedup_service.runtime.live_stats.time_series import TimeSeries
from dedup_service.runtime.live_stats.top_k import TopK
from dedup_service.runtime.workers.pool import PoolState

__all__ = ["LiveStats"]

BITS = 65
SCORE_STEP = 0.05
SCORES = 20
ROWS, PAIRS, GROUPS = 1000, 1000, 1000
"""Rows of the newest; host pairs and groups counted at a time: 300 bytes each, about."""

SPAN_S = 300.0
LIVE_ROWS, LIVE_NOTES = 20, 10
"""Of a tick, at most: what a person can follow, and what 200 watchers can be sent."""

DUPLICATE, UNDECIDED = VerdictKind.DUPLICATE, VerdictKind.UNDECIDED


class LiveStats(NullObserver):
    """mode: filter, crawl or serve. scope: `process`, or `log` where every page of a log is heard of.

    space: the `space_id`, where it is known by now. sampler: draws duplicates to be compared again, None draws none.
    clock: Unix seconds.
    """

    def __init__(
        self,
        mode: str,
        *,
        scope: str = "process",
        space: str | None = None,
        sampler: Sampler | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        now = clock()
        self.mode, self.scope, self.space = mode, scope, space
        self.sampler = sampler
        self.started_at = now
        self.clock = clock
        self.lock = threading.Lock()
        self.verdicts: dict[VerdictKind, int] = dict.fromkeys(VerdictKind, 0)
        self.guarded: dict[Guard, int] = dict.fromkeys(Guard, 0)
        self.rejected: Counter[str] = Counter()
        self.repeated = 0
        self.problems: Counter[str] = Counter()
        self.removals: Counter[str] = Counter(retraction=0, correction=0)
        self.hour, self.day = TimeSeries(1, 3600, 3, now), TimeSeries(60, 1440, 3, now)
        self.distances = {"words": [0] * BITS, "body": [0] * BITS}
        self.no_distance = {"words": 0, "body": 0}
        self.scores, self.no_score = [0] * SCORES, 0
        self.hosts: TopK[tuple[str, str]] = TopK(PAIRS)
        self.groups: TopK[str] = TopK(GROUPS)
        self.newest = Newest(ROWS)
        self.latency: dict[tuple[str, str], LatencyHistogram] = {}
        self.records: Counter[str] = Counter()
        self.lag: dict[str, Mapping[str, int]] = {}
        self.entries: int | None = None
        self.indexes: IndexEvent | None = None
        self.drawn = self.checked = self.wrong = self.unchecked = 0
        self.newest_wrong: deque[RecheckResult] = deque(maxlen=20)
        self.pool: Callable[[], PoolState | None] = lambda: None
        self.ask_index: Callable[[], IndexEvent | None] = lambda: None
        self.watchers: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self.events = EventLog(secrets.token_hex(4))
        self._titles: dict[str, str] = {}
        self._notes: deque[tuple[str, Any]] = deque(maxlen=200)
        self._changed = False
        self._told_s, self._told_row = self.hour.newest_s, 0

    def decided(self, pages: Sequence[PageDecided]) -> None:
        """Count pages by verdict, and look at those that repeat another."""
        now, duplicates = self.clock(), 0
        with self.lock:
            verdicts = self.verdicts
            for page in pages:
                kind = page.verdict.kind
                verdicts[kind] += 1
                if kind in NAMING:
                    row = self.newest.add(page, now)
                    if kind is DUPLICATE:
                        duplicates += 1
                        self._repeats(row, now)
                elif kind is UNDECIDED and (guard := page.verdict.guard) is not None:
                    self.guarded[guard] += 1
            self._count(now, len(pages), duplicates, 0)

    def batch(self, fact: BatchEvent) -> None:
        """Count a batch of a step: its time, what it could not use, what it left behind."""
        now = self.clock()
        with self.lock:
            rejected = max(self.rejected.values(), default=0)
            self.records[fact.step] += fact.records
            self.rejected[fact.step] += fact.rejected  # both steps of the service meet the same records
            self.repeated += fact.repeated
            for part, seconds in fact.seconds.items():
                spread = self.latency.get((fact.step, part))
                if spread is None:
                    spread = self.latency[fact.step, part] = LatencyHistogram(SPAN_S, now)
                spread.add(seconds, now)
            self.lag[fact.step] = fact.lag
            if fact.entries is not None:
                self.entries = fact.entries
            self._count(now, 0, 0, max(self.rejected.values()) - rejected)

    def removed(self, fact: RemovalEvent) -> None:
        """Count a kept page that left."""
        with self.lock:
            self.removals[fact.kind] += 1
        self.publish("removal", {"kind": fact.kind, "url": shown(cut(fact.url, MAX_URL))})

    def index(self, fact: IndexEvent) -> None:
        """Remember how the indexes stand."""
        with self.lock:
            self.indexes, self.entries = fact, fact.entries

    def refresh_index(self) -> None:
        """Ask how the indexes stand, where somebody can say so without being in the way."""
        fact = self.ask_index()
        if fact is not None:
            self.index(fact)

    def problem(self, fact: ProblemEvent) -> None:
        """Count what was survived."""
        with self.lock:
            self.problems[fact.kind] += fact.count
            self._count(self.clock(), 0, 0, fact.count)
        text = shown(cut(fact.text, MAX_URL))
        self.publish("problem", {"step": fact.step, "kind": fact.kind, "text": text, "count": fact.count})

    def told_checked(self, checked: RecheckResult | None) -> None:
        """Count a duplicate that was compared again; None: a text was gone."""
        with self.lock:
            self._changed = True
            if checked is None:
                self.unchecked += 1
                return
            self.checked += 1
            if not checked.borne_out:
                self.wrong += 1
                self.newest_wrong.append(checked)

    def publish(self, name: str, data: Mapping[str, Any]) -> None:
        """Tell whoever watches, with the next tick: `data` with the time as `at`, fit for JSON and to be shown."""
        self._notes.append((name, {"at": round(self.clock(), 3), **data}))
        self._changed = True

    @property
    def updated(self) -> int:
        """Kept pages whose place an update took."""
        return self.verdicts[VerdictKind.UPDATED]

    def title_of(self, url: str) -> str:
        """Return the title of the newest copy of the page at `url` (cut), "" where none is remembered."""
        return self._titles.get(url, "")

    def tick(self, summary: Callable[["LiveStats"], dict[str, Any]]) -> list[Event]:
        """Return what is new since the last tick, as messages; nothing where nothing happened."""
        with self.lock:
            self.hour.move(self.clock())
            if not self._changed:
                return []
            self._changed = False
            seconds = self._seconds()
            rows = list(self.newest.since(self._told_row))
            self._told_row = self.newest.number
        notes = [self._notes.popleft() for _ in range(len(self._notes))]
        told = [self.events.add("tick", {"summary": summary(self), "seconds": seconds})]
        if rows:
            shown_rows = [row.shown() for row in rows[:LIVE_ROWS]]
            told.append(self.events.add("duplicates", {"rows": shown_rows, "missed": len(rows) - len(shown_rows)}))
        return told + [self.events.add(name, data) for name, data in notes[:LIVE_NOTES]]

    def _seconds(self) -> list[list[int]]:
        """Return the whole seconds since the last tick, a minute of them at most; the one in progress comes next."""
        newest = self.hour.newest_s
        passed = min(newest - self._told_s, 60)
        whole = self.hour.last(passed)
        self._told_s = newest
        self._changed = any(self.hour.in_progress())
        return [[newest - len(whole) + at, *counts] for at, counts in enumerate(whole)]

    def _repeats(self, row: DuplicateRow, now: float) -> None:
        """Look at a duplicate."""
        for channel, bits in (("words", row.distance.words), ("body", row.distance.body)):
            if bits is None:
                self.no_distance[channel] += 1
            else:
                self.distances[channel][bits] += 1
        if row.score is None:
            self.no_score += 1
        else:
            self.scores[min(int(row.score / SCORE_STEP + 1e-9), SCORES - 1)] += 1
        self.hosts.add((row.original_host, row.host))
        self.groups.add(row.original_url)
        self._remember_title(row)
        if self.sampler is not None and self.sampler.offer(row, now):
            self.drawn += 1

    def _remember_title(self, row: DuplicateRow) -> None:
        self._titles[row.original_url] = row.title
        if len(self._titles) > 2 * GROUPS:
            counted = {top.thing for top in self.groups.top(GROUPS)}
            self._titles = {url: title for url, title in self._titles.items() if url in counted}

    def _count(self, now: float, pages: int, duplicates: int, errors: int) -> None:
        self.hour.add(now, (pages, duplicates, errors))
        self.day.add(now, (pages, duplicates, errors))
        self._changed = True
