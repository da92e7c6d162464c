"""What a service does, as log lines: what happened, and now and then how much was done.

At `info` a step tells every ten seconds what its batches added up to, if there were any; at `debug` each batch has a
line of its own. Problems that were survived are warnings, the restore tells of itself every five seconds.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from dedup_service.runtime.facts import BatchFact, Bystander, Problem, RestoreFact

__all__ = ["ServiceLog"]

_LOG = logging.getLogger(__name__)

SUMMARY_S = 10.0
RESTORE_S = 5.0


class ServiceLog(Bystander):
    """An observer that logs. restores: False where somebody else shows them."""

    def __init__(self, *, restores: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._restores = restores
        self._clock = clock
        self._steps: dict[str, _Sum] = {}
        self._lock = threading.Lock()
        self._restore_at: float | None = None

    def batch(self, fact: BatchFact) -> None:
        """Add a batch up, or write it where every one is asked for."""
        if _LOG.isEnabledFor(logging.DEBUG):
            _log(logging.DEBUG, "batch", _facts_of(fact))
        with self._lock:
            total = self._steps.setdefault(fact.step, _Sum(self._clock()))
            facts = total.add(fact, self._clock())
        if facts is not None:
            _log(logging.INFO, "batches", facts)

    def restore(self, fact: RestoreFact) -> None:
        """Tell how far it has come."""
        now = self._clock()
        if self._restore_at is None:
            self._restore_at = now + RESTORE_S
        if not self._restores or not (fact.done or now >= self._restore_at):
            return
        self._restore_at = now + RESTORE_S
        facts = {"records": fact.records, "of": fact.total, "seconds": round(fact.seconds, 1)}
        _log(logging.INFO, "restored" if fact.done else "restoring", facts)

    def problem(self, fact: Problem) -> None:
        """Tell of a problem."""
        _log(logging.WARNING, fact.text, {"step": fact.step, "kind": fact.kind})

    def close(self) -> None:
        """Tell of the batches since the last line."""
        with self._lock:
            rest = [total.facts(self._clock()) for total in self._steps.values() if total.counts]
        for facts in rest:
            _log(logging.INFO, "batches", facts)


class _Sum:
    """What the batches of one step added up to since the last line."""

    def __init__(self, now: float) -> None:
        self._since = now
        self._last: BatchFact | None = None
        self.counts: Counter[str] = Counter()

    def add(self, fact: BatchFact, now: float) -> dict[str, Any] | None:
        """Add one; return the line's facts where it is due."""
        self._last = fact
        self.counts.update(batches=1, **_counts_of(fact))
        return self.facts(now) if now - self._since >= SUMMARY_S else None

    def facts(self, now: float) -> dict[str, Any]:
        """Return what was added, and begin anew."""
        assert self._last is not None, "something was added"
        facts = {
            "step": self._last.step,
            **self.counts,
            "seconds": round(now - self._since, 1),
            **_state_of(self._last),
        }
        self._since, self.counts = now, Counter()
        return facts


def _counts_of(fact: BatchFact) -> dict[str, int]:
    counts = {"records": fact.records, **fact.verdicts, "rejected": fact.rejected, "repeated": fact.repeated}
    return {name: count for name, count in counts.items() if count}


def _state_of(fact: BatchFact) -> dict[str, int]:
    state = {"sequence": fact.sequence, "entries": fact.entries, "lag": sum(fact.lag.values()) if fact.lag else None}
    return {name: value for name, value in state.items() if value is not None}


def _facts_of(fact: BatchFact) -> dict[str, Any]:
    seconds = {f"{part}_s": round(value, 4) for part, value in fact.seconds.items()}
    return {"step": fact.step, **_counts_of(fact), **_state_of(fact), **seconds}


def _log(level: int, event: str, facts: Mapping[str, Any]) -> None:
    _LOG.log(level, "%s", event, extra={"facts": dict(facts)})
