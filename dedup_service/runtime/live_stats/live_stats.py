"""The observer behind every view of the filter: it aggregates events, and gives what is new once a second.

How: events are counted in the thread that emits them, under a lock that is held only for as long as it takes to copy
some counters. Answers (`figures`) and messages (`tick`) are assembled in the thread that asks for them.
Invariant: memory is bounded, whatever comes: time series, the most frequent hosts and groups, the newest rows, the
latest messages. Strings from pages are truncated when they are stored and cleaned when they are displayed
(`display_safe`).

The latest messages of an event stream: numbered, encoded, in a bounded ring.

A message is encoded once, for any number of readers. Its id is RUN-NUMBER. Each run of the program has another RUN, so
an id from before a restart is recognised.
Source: WHATWG, "HTML Living Standard", 9.2 Server-sent events.

A latency histogram whose bucket bounds grow by a tenth, so that a quantile is at most 5% off.

Counts are kept for two spans of time, the current one and the previous one, so that quantiles are those of the last
minutes.
"""

import math
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from dedup_service.core.decision.expiry import ExpiryReason
from dedup_service.core.verdict import Guard, VerdictKind
from dedup_service.runtime.events import (
    BatchEvent,
    IndexEvent,
    Observer,
    PageDecided,
    ProblemEvent,
    RemovalEvent,
    RestoreEvent,
)
from dedup_service.runtime.live_stats.display_safe import MAX_URL, cut, shown
from dedup_service.runtime.live_stats.newest import NAMING, DuplicateRow, Newest
from dedup_service.runtime.live_stats.recheck import RecheckResult, Sampler
from dedup_service.runtime.live_stats.time_series import TimeSeries
from dedup_service.runtime.live_stats.top_k import TopK
from dedup_service.runtime.workers.pool import PoolState

MIN_S, MAX_S = 1e-5, 1e3
GROWTH = 1.1
_LOG = math.log(GROWTH)
BUCKETS = math.ceil(math.log(MAX_S / MIN_S) / _LOG) + 1


class LatencyHistogram:
    """Latencies of one part of the work. span_s: quantiles cover the last one to two spans. now_s: Unix seconds."""

    def __init__(self, span_s: float, now_s: float) -> None:
        self._span_s = span_s
        self._began_s = now_s
        self._current = [0] * BUCKETS
        self._previous = [0] * BUCKETS
        self.count = 0
        self.seconds = 0.0

    def add(self, seconds: float, now_s: float) -> None:
        """Add a latency, clamped to 10 µs and 1,000 s."""
        self.rotate(now_s)
        bucket = int(math.log(seconds / MIN_S) / _LOG) if seconds > MIN_S else 0
        self._current[min(bucket, BUCKETS - 1)] += 1
        self.count += 1
        self.seconds += seconds

    def rotate(self, now_s: float) -> None:
        """Begin a new span if the current one is over."""
        passed = (now_s - self._began_s) / self._span_s
        if passed >= 1:
            self._previous = self._current if passed < 2 else [0] * BUCKETS
            self._current = [0] * BUCKETS
            self._began_s = now_s

    def quantile(self, share: float) -> float | None:
        """Return the latency in seconds that a share (0 to 1) of the latest does not exceed; None without data."""
        buckets = [current + previous for current, previous in zip(self._current, self._previous, strict=True)]
        total = sum(buckets)
        if not total:
            return None
        rank, seen = max(1, math.ceil(share * total)), 0
        for bucket, count in enumerate(buckets):
            seen += count
            if seen >= rank:
                return MIN_S * math.exp(_LOG * (bucket + 0.5))
        raise AssertionError("the last rank is in the last bucket")


_encode = msgspec.json.Encoder().encode


class Event(NamedTuple):
    """A message. number: counts from 1 in a run. frame: the message as it is sent."""

    number: int
    frame: bytes


class EventLog:
    """The last `capacity` messages of this run. Thread-safe."""

    def __init__(self, run: str, capacity: int = 600) -> None:
        self.run = run
        self._ring: deque[Event] = deque(maxlen=capacity)
        self._number = 0
        self._lock = threading.Lock()

    @property
    def last_id(self) -> str:
        """Id of the newest message; RUN-0 before the first one."""
        return f"{self.run}-{self._number}"

    @property
    def number(self) -> int:
        """Number of the newest message; 0 before the first one."""
        return self._number

    def add(self, name: str, data: Any) -> Event:
        """Number a message, keep it and return it. name: without line breaks; data: encodable as JSON."""
        body = _encode(data)  # encoded JSON has no line break, so it is one line of `data`
        with self._lock:
            self._number += 1
            event = Event(self._number, self._frame(self._number, name, body))
            self._ring.append(event)
        return event

    def reset(self) -> bytes:
        """Return the message that tells a reader to reload. Its id is the newest, so the reader can continue."""
        return self._frame(self._number, "reset", b"{}")

    def since(self, last_id: str) -> list[Event] | None:
        """Return the messages after this id; None if the id is unknown, or if messages after it were dropped."""
        run, _, text = last_id.rpartition("-")
        if run != self.run or not (text.isascii() and text.isdecimal() and len(text) < 20):
            return None
        number = int(text)
        with self._lock:
            oldest = self._ring[0].number if self._ring else self._number + 1
            if not oldest - 1 <= number <= self._number:
                return None
            return [event for event in self._ring if event.number > number]

    def _frame(self, number: int, name: str, body: bytes) -> bytes:
        return b"id: %s-%d\nevent: %s\ndata: %s\n\n" % (self.run.encode(), number, name.encode(), body)


BITS = 65
SCORE_STEP = 0.05
SCORES = 20
ROWS, PAIRS, GROUPS = 1000, 1000, 1000
"""Newest rows kept; host pairs and groups counted at a time. About 300 bytes each."""

SPAN_S = 300.0
LIVE_ROWS, LIVE_NOTES = 20, 10
"""Maximum rows and notes of a tick: what a person can follow, and what can be sent to 200 watchers."""

DUPLICATE, UNDECIDED, UPDATED = VerdictKind.DUPLICATE, VerdictKind.UNDECIDED, VerdictKind.UPDATED


class LiveStats(Observer):
    """Live statistics of one process. Thread-safe.

    mode: filter, crawl or serve. scope: `process`, or `log` if every page of a log is observed. space: the `space_id`,
    if it is known already. sampler: draws duplicates to compare again; None draws none. clock: Unix seconds.

    updated: kept pages that an update replaced. claim_refused: pages whose claim was refused.

    Set by the owner, read on demand: `pool`, the state of the worker processes; `ask_index`, the current index sizes;
    `watchers`, connected and dropped readers of the event stream.
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
        self.before: dict[str, int] | None = None
        self.claim_refused = self.updated = 0
        self.rejected: Counter[str] = Counter()
        self.repeated = 0
        self.problems: Counter[str] = Counter()
        self.expired: Counter[str] = Counter({reason.value: 0 for reason in ExpiryReason})
        self.removals: Counter[str] = Counter(retraction=0, correction=0, unwritten=0)
        self.hour, self.day = TimeSeries(1, 3600, 3, now), TimeSeries(60, 1440, 3, now)
        self.distances = {"words": [0] * BITS, "body": [0] * BITS}
        self.no_distance = {"words": 0, "body": 0}
        self.scores, self.no_score = [0] * SCORES, 0
        self.hosts: TopK[tuple[str, str]] = TopK(PAIRS)
        self.groups: TopK[str] = TopK(GROUPS)
        self.newest = Newest(ROWS)
        self.latency: dict[tuple[str, str], LatencyHistogram] = {}
        self.records: Counter[str] = Counter()
        self.entries: int | None = None
        self.indexes: IndexEvent | None = None
        self.drawn = self.checked = self.wrong = self.unchecked = 0
        self.newest_problems: deque[dict[str, Any]] = deque(maxlen=20)
        self.newest_wrong: deque[RecheckResult] = deque(maxlen=20)
        self.pool: Callable[[], PoolState | None] = lambda: None
        self.lag: Callable[[], Mapping[str, Mapping[str, int]]] = dict
        self.lag_age_s: Callable[[], float | None] = lambda: None
        self.processes: Callable[[], list[dict[str, Any]]] = list
        self.not_ready: Callable[[], str] = lambda: ""
        self.ask_index: Callable[[], IndexEvent | None] = lambda: None
        self.watchers: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self.events = EventLog(secrets.token_hex(4))
        self._titles: dict[str, str] = {}
        self._notes: deque[tuple[str, Any]] = deque(maxlen=200)
        self._changed = False
        self._sent_s, self._sent_row = self.hour.newest_s, 0

    def restore(self, event: RestoreEvent) -> None:
        """Take over the counts of pages that the log had before."""
        self.before = {kind.value: event.counts.get(kind, 0) for kind in VerdictKind} if event.counts else None

    def decided(self, pages: Sequence[PageDecided]) -> None:
        """Count pages by verdict, and add them to the newest ones."""
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
                        self._count_duplicate(row, now)
                else:
                    self.newest.add_other(page, now)
                    if kind is UNDECIDED and (guard := page.verdict.guard) is not None:
                        self.guarded[guard] += 1
                self.claim_refused += page.verdict.claim_refused
                self.updated += kind is UPDATED and not page.verdict.by_claim
            self._count(now, len(pages), duplicates, 0)

    def batch(self, event: BatchEvent) -> None:
        """Count a batch of a step: its time, rejected and repeated records."""
        now = self.clock()
        with self.lock:
            rejected = max(self.rejected.values(), default=0)
            self.records[event.step] += event.records
            self.rejected[event.step] += event.rejected  # both steps of the service see the same records
            self.repeated += event.repeated
            self.expired.update(event.expired)
            for part, seconds in event.seconds.items():
                histogram = self.latency.get((event.step, part))
                if histogram is None:
                    histogram = self.latency[event.step, part] = LatencyHistogram(SPAN_S, now)
                histogram.add(seconds, now)
            if event.entries is not None:
                self.entries = event.entries
            self._count(now, 0, 0, max(self.rejected.values()) - rejected)
        for text in event.rejections:
            self._note_problem(ProblemEvent(event.step, "rejected", text))

    def removed(self, event: RemovalEvent) -> None:
        """Count a kept page that was removed."""
        with self.lock:
            self.removals[event.kind] += 1
        self.publish("removal", {"kind": event.kind, "url": shown(cut(event.url, MAX_URL))})

    def index(self, event: IndexEvent) -> None:
        """Keep the index sizes."""
        with self.lock:
            self.indexes, self.entries = event, event.entries

    def refresh_index(self) -> None:
        """Get current index sizes, if they are available without waiting."""
        event = self.ask_index()
        if event is not None:
            self.index(event)

    def problem(self, event: ProblemEvent) -> None:
        """Count a problem, and publish it."""
        with self.lock:
            self.problems[event.kind] += event.count
            self._count(self.clock(), 0, 0, event.count)
        self._note_problem(event)

    def _note_problem(self, event: ProblemEvent) -> None:
        text = shown(cut(event.text, MAX_URL))
        problem = {"step": event.step, "kind": event.kind, "text": text, "count": event.count}
        with self.lock:
            self.newest_problems.appendleft({"at": round(self.clock(), 3), **problem})
        self.publish("problem", problem)

    def rechecked(self, result: RecheckResult | None) -> None:
        """Count a duplicate that was compared again; None if a text was no longer kept."""
        with self.lock:
            self._changed = True
            if result is None:
                self.unchecked += 1
                return
            self.checked += 1
            if not result.confirmed:
                self.wrong += 1
                self.newest_wrong.append(result)

    def publish(self, name: str, data: Mapping[str, Any]) -> None:
        """Send a message with the next tick: `data` and the time as `at`. data: encodable as JSON, safe to display."""
        self._notes.append((name, {"at": round(self.clock(), 3), **data}))
        self._changed = True

    def title_of(self, url: str) -> str:
        """Return the title (truncated) of the newest copy of the page at `url`; "" if none is kept."""
        return self._titles.get(url, "")

    def tick(self, summary: Callable[["LiveStats"], dict[str, Any]]) -> list[Event]:
        """Return what is new since the last tick, as messages; [] if nothing happened."""
        with self.lock:
            self.hour.advance(self.clock())
            if not self._changed:
                return []
            self._changed = False
            seconds = self._seconds()
            rows = list(self.newest.since(self._sent_row))
            self._sent_row = self.newest.number
        notes = [self._notes.popleft() for _ in range(len(self._notes))]
        messages = [self.events.add("tick", {"summary": summary(self), "seconds": seconds})]
        if rows:
            shown_rows = [row.shown() for row in rows[:LIVE_ROWS]]
            messages.append(self.events.add("duplicates", {"rows": shown_rows, "missed": len(rows) - len(shown_rows)}))
        return messages + [self.events.add(name, data) for name, data in notes[:LIVE_NOTES]]

    def _seconds(self) -> list[list[int]]:
        """Return the counts of the complete seconds since the last tick, at most 60."""
        newest = self.hour.newest_s
        passed = min(newest - self._sent_s, 60)
        complete = self.hour.last(passed)
        self._sent_s = newest
        self._changed = any(self.hour.in_progress())
        return [[second, *counts] for second, counts in enumerate(complete, newest - len(complete))]

    def _count_duplicate(self, row: DuplicateRow, now: float) -> None:
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
            counted = {top.item for top in self.groups.top(GROUPS)}
            self._titles = {url: title for url, title in self._titles.items() if url in counted}

    def _count(self, now: float, pages: int, duplicates: int, errors: int) -> None:
        self.hour.add(now, (pages, duplicates, errors))
        self.day.add(now, (pages, duplicates, errors))
        self._changed = True
