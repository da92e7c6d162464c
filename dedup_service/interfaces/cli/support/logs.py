"""Log lines of a service: one event a line, as text for people or JSON for machines, on stderr.

The standard library's logging with a formatter of our own: the client library and our modules log through it already,
and a structlog or a JSON formatter from outside would have to be put behind the same handler to get their lines.

    2026-11-21T16:00:00.123Z INFO  batches step=decide records=4200 unique=3991
    {"at": "2026-11-21T16:00:00.123Z", "level": "info", "logger": "…", "event": "batches", "step": "decide", …}

Facts go into `extra={"facts": {…}}`. The Kafka client repeats itself while a broker is away; each of its complaints is
written once a minute, with how often it came in between.

What a service does, as log lines: what happened, and now and then how much was done.

At `info` a step tells every ten seconds what its batches added up to, if there were any; at `debug` each batch has a
line of its own. Problems that were survived are warnings, the restore tells of itself every five seconds.
"""

import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

import click
import msgspec

from dedup_service.runtime.events import BatchEvent, NullObserver, ProblemEvent, RestoreEvent

__all__ = ["LOG_OPTIONS", "QUIET", "QuietClient", "ServiceLog", "configure_logging"]

LEVELS = ("debug", "info", "warning", "error")
CLIENT = "kafka"
QUIET = {
    CLIENT: logging.WARNING,
    "kafka.net.selector": logging.ERROR,  # warns of every 0.1 s that the processor was somebody else's
    "uvicorn": logging.WARNING,
}
"""Loggers of others, and from which level on they are heard, unless everything is."""

REPEAT_S = 60.0
REMEMBERED = 500
"""Complaints of the client told apart; it has far fewer, unless somebody formats them before they are logged."""

LOG_OPTIONS = (
    click.option(
        "--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="Least that counts."
    ),
    click.option(
        "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Of a line."
    ),
)


def configure_logging(level: str, log_format: str, stream: TextIO | None = None) -> None:
    """Have every logger of the process write to `stream` (stderr) in this format, from `level` on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    handler.addFilter(QuietClient())
    root = logging.getLogger()
    for earlier in root.handlers[:]:
        root.removeHandler(earlier)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name, minimum in QUIET.items():
        logging.getLogger(name).setLevel(logging.DEBUG if level == "debug" else minimum)
    logging.captureWarnings(capture=True)


class TextLines(logging.Formatter):
    """Time, level, event, `name=value`; an error's trace on the lines after."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of `record`."""
        facts = "".join(f" {name}={_plain(value)}" for name, value in _facts(record).items())
        source = "" if record.name.startswith("dedup_service") else f"{record.name}: "
        line = f"{_time(record)} {record.levelname:<7} {source}{_one_line(record.getMessage())}{facts}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """One object a line; an error's trace is a string in it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of `record`."""
        line: dict[str, Any] = {
            "at": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class QuietClient(logging.Filter):
    """Let each complaint of the client library through once a minute, and say how many were left out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._told: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether `record` is written; one that is may get `suppressed` among its facts."""
        if record.name.split(".")[0] != CLIENT or record.levelno < logging.WARNING:
            return True
        key, now = (record.name, str(record.msg)), self._clock()
        told_at, left_out = self._told.get(key, (-REPEAT_S, 0))
        if now - told_at < REPEAT_S:
            self._told[key] = told_at, left_out + 1
            return False
        if len(self._told) >= REMEMBERED:
            self._told.clear()
        self._told[key] = now, 0
        if left_out:
            record.facts = {"suppressed": left_out}
        return True


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    return getattr(record, "facts", {})


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())


def _plain(value: Any) -> str:
    """A value that a reader can tell from the next name."""
    if isinstance(value, float):
        return f"{value:.3g}"
    text = str(value)
    return text if text and not any(c in text for c in ' ="\n') else msgspec.json.encode(text).decode()


_LOG = logging.getLogger(__name__)

SUMMARY_S = 10.0
RESTORE_S = 5.0


class ServiceLog(NullObserver):
    """An observer that logs. restores: False where somebody else shows them."""

    def __init__(self, *, restores: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._restores = restores
        self._clock = clock
        self._steps: dict[str, _Sum] = {}
        self._lock = threading.Lock()
        self._restore_at: float | None = None

    def batch(self, fact: BatchEvent) -> None:
        """Add a batch up, or write it where every one is asked for."""
        if _LOG.isEnabledFor(logging.DEBUG):
            _log(logging.DEBUG, "batch", _facts_of(fact))
        with self._lock:
            total = self._steps.setdefault(fact.step, _Sum(self._clock()))
            facts = total.add(fact, self._clock())
        if facts is not None:
            _log(logging.INFO, "batches", facts)

    def restore(self, fact: RestoreEvent) -> None:
        """Tell how far it has come."""
        now = self._clock()
        if self._restore_at is None:
            self._restore_at = now + RESTORE_S
        if not self._restores or not (fact.done or now >= self._restore_at):
            return
        self._restore_at = now + RESTORE_S
        facts = {"records": fact.records, "of": fact.total, "seconds": round(fact.seconds, 1)}
        _log(logging.INFO, "restored" if fact.done else "restoring", facts)

    def problem(self, fact: ProblemEvent) -> None:
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
        self._last: BatchEvent | None = None
        self.counts: Counter[str] = Counter()

    def add(self, fact: BatchEvent, now: float) -> dict[str, Any] | None:
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


def _counts_of(fact: BatchEvent) -> dict[str, int]:
    counts = {"records": fact.records, **fact.verdicts, "rejected": fact.rejected, "repeated": fact.repeated}
    return {name: count for name, count in counts.items() if count}


def _state_of(fact: BatchEvent) -> dict[str, int]:
    state = {"sequence": fact.sequence, "entries": fact.entries, "lag": sum(fact.lag.values()) if fact.lag else None}
    return {name: value for name, value in state.items() if value is not None}


def _facts_of(fact: BatchEvent) -> dict[str, Any]:
    seconds = {f"{part}_s": round(value, 4) for part, value in fact.seconds.items()}
    return {"step": fact.step, **_counts_of(fact), **_state_of(fact), **seconds}


def _log(level: int, event: str, facts: Mapping[str, Any]) -> None:
    _LOG.log(level, "%s", event, extra={"facts": dict(facts)})
