"""Latency of verdicts: pages are published at a fixed rate, and a consumer records when each answer arrives.

The latency of a page is the time from its timestamp, taken when the producer accepts it, to the moment when
a consumer with `read_committed` has its verdict. The service answers a first load before, so that broker and
workers are warm.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.service.contenders import TwinsieveContender
from benchmarks.service.usage import brokers, cpu_s
from dedup_service.runtime.kafka.topics import Topics
from tests.chaos.publishing import PacedPublisher
from tests.chaos.reading import Tail, read_all
from tests.crawls.stream import Sent

PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies at `rate` pages/s. seconds: of each page, sorted; cores: cores busy, by process."""

    rate: float
    seconds: list[float]
    cores: dict[str, float]

    def quantile(self, share: float) -> float:
        """Return the seconds within which this share of the pages (0 to 1) has its verdict."""
        return self.seconds[int(len(self.seconds) * share)]


def measure(
    bootstrap: str, topics: Topics, folder: Path, first_load: Sequence[Sent], pages: Sequence[Sent], rate: float
) -> Latency:
    """Measure latency with one worker at `rate` pages a second.

    The service first answers `first_load`; then `pages` are published and all answers awaited. `topics` must
    exist and be empty. Raises TimeoutError if answers are missing after ten minutes.
    """
    contender = TwinsieveContender(1)
    contender.start(bootstrap, topics, folder)
    try:
        wait_for(lambda: contender.ready, "the service was not ready")
        arrivals = Arrivals(bootstrap, topics, len(first_load) + len(pages))
        arrivals.start()
        publisher = PacedPublisher(bootstrap, topics.pages)
        publisher.publish(first_load, rate=None)
        wait_for(lambda: len(arrivals.arrived_at) >= len(first_load), "the first load was not answered")
        before, begin = _used_s(contender), time.time()
        publisher.publish(pages, rate=rate)
        used, lasted = _used_s(contender), time.time() - begin
        wait_for(lambda: not arrivals.is_alive(), "the pages were not answered")
        publisher.close()
    finally:
        contender.stop()
    published = read_all(bootstrap, [topics.pages])[topics.pages]
    sent_ms = {(record.partition, record.offset): record.timestamp for record in published}
    seconds = [
        at - sent_ms[place] / 1000 for place, at in arrivals.arrived_at.items() if sent_ms[place] >= begin * 1000
    ]
    cores = {name: (used[name] - before[name]) / lasted for name in used}
    return Latency(rate, sorted(seconds), cores)


class Arrivals(threading.Thread):
    """Records when each verdict arrives at a consumer. arrived_at: Unix time by (partition, offset)."""

    def __init__(self, bootstrap: str, topics: Topics, expected: int) -> None:
        super().__init__(daemon=True)
        self._tail = Tail(bootstrap, [topics.verdicts])
        self._expected = expected
        self.arrived_at: dict[tuple[int, int], float] = {}

    def run(self) -> None:
        """Read until all expected verdicts have arrived."""
        while len(self.arrived_at) < self._expected:
            for record in self._tail.poll():
                now, verdict = time.time(), json.loads(record.value)
                self.arrived_at[verdict["partition"], verdict["offset"]] = now
        self._tail.close()


def _used_s(contender: TwinsieveContender) -> dict[str, float]:
    return {**contender.used_s, "broker": cpu_s(brokers()), "load and reader": time.process_time()}


def wait_for(condition: Callable[[], bool], failure: str) -> None:
    """Wait until `condition()` holds; TimeoutError with `failure` after ten minutes."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{failure} within {PATIENCE_S:g} s")
        time.sleep(0.1)
