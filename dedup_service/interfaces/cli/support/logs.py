"""Log lines of a service, on stderr: one event a line, as text for people or as JSON for machines.

    2026-11-21T16:00:00.123Z INFO    batches step=decide records=4200 unique=3991 {"at":
    "2026-11-21T16:00:00.123Z", "level": "info", "logger": "…", "event": "batches", "step": "decide", …}

How: the standard library's logging, with two formatters. The Kafka client and our modules log through it
already; a structlog or JSON formatter from outside would have to sit behind the same handler to format
their lines. A line's fields come from `extra={"facts": {…}}`. While a broker is away, our lines say what waits for
it and since when; the dozens of the Kafka client are written at `debug` alone.

`ServiceLog` is the observer that logs what the service does. At `info`, each step reports what its batches
added up to, ten seconds after the first of them; at `debug`, each batch has a line. Problems that the
service survived are warnings, and so is the first rejected record of a kind in a minute. A restore reports its
progress every five seconds.
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

from dedup_service.runtime.events import BatchEvent, Observer, ProblemEvent, RestoreEvent

LEVELS = ("debug", "info", "warning", "error")
QUIET = {
    "kafka": logging.CRITICAL,
    "uvicorn": logging.ERROR,  # warns of every request that is not HTTP: a client could fill the log
}
"""Lowest level of other packages' loggers, unless the level is debug."""

SUMMARY_S = 10.0
RESTORE_S = 5.0

LOG_OPTIONS = (
    click.option(
        "--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="Lowest level to log."
    ),
    click.option(
        "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Log line format."
    ),
)

_LOG = logging.getLogger(__name__)


def configure_logging(level: str, log_format: str, stream: TextIO | None = None) -> None:
    """Make every logger of the process write to `stream` (stderr) in `log_format`, at `level` and above."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    root = logging.getLogger()
    for earlier in root.handlers[:]:
        root.removeHandler(earlier)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name, quiet_level in QUIET.items():
        logging.getLogger(name).setLevel(logging.DEBUG if level == "debug" else quiet_level)
    logging.captureWarnings(capture=True)


class TextLines(logging.Formatter):
    """Format a record as time, level, event and `name=value`; a traceback follows on separate lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of `record`."""
        fields = "".join(f" {name}={_quoted(value)}" for name, value in _fields(record).items())
        source = "" if record.name.startswith("dedup_service") else f"{record.name}: "
        line = f"{_time(record)} {record.levelname:<7} {source}{_one_line(record.getMessage())}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """Format a record as one JSON object; a traceback is a string in it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of `record`."""
        line: dict[str, Any] = {
            "at": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class ServiceLog(Observer):
    """An observer that logs. restores: False if a progress bar shows restores. summary_s: batches in a line."""

    def __init__(
        self, *, restores: bool = True, summary_s: float = SUMMARY_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._restores = restores
        self._summary_s, self._clock = summary_s, clock
        self._steps: dict[str, _BatchTotals] = {}
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._next_restore_line: float | None = None

    def batch(self, event: BatchEvent) -> None:
        """Add a batch to its step's totals, which are logged soon; at `debug`, also log it."""
        if _LOG.isEnabledFor(logging.DEBUG):
            _log(logging.DEBUG, "batch", _batch_fields(event))
        for text in event.rejections:
            _log(logging.WARNING, text, {"step": event.step, "kind": "rejected"})
        with self._lock:
            self._steps.setdefault(event.step, _BatchTotals()).add(event, self._clock())
            if self._timer is None:
                self._timer = threading.Timer(self._summary_s, self._log_totals)
                self._timer.daemon = True
                self._timer.start()

    def restore(self, event: RestoreEvent) -> None:
        """Log the progress of a restore, every RESTORE_S seconds and at its end."""
        now = self._clock()
        if self._next_restore_line is None:
            self._next_restore_line = now + RESTORE_S
        if not self._restores or not (event.done or now >= self._next_restore_line):
            return
        self._next_restore_line = now + RESTORE_S
        fields = {"messages": event.messages, "of": event.total, "seconds": round(event.seconds, 1)}
        _log(logging.INFO, "restored" if event.done else "restoring", fields)

    def problem(self, event: ProblemEvent) -> None:
        """Log a problem that the service survived; one of its own is an error."""
        level = logging.ERROR if event.kind == "fault" else logging.WARNING
        _log(level, event.text, {"step": event.step, "kind": event.kind})

    def close(self) -> None:
        """Log the batches since the last line."""
        if self._timer is not None:
            self._timer.cancel()
        self._log_totals()

    def _log_totals(self) -> None:
        with self._lock:
            self._timer = None
            remaining = [totals.take(self._clock()) for totals in self._steps.values() if totals.counts]
        for fields in remaining:
            _log(logging.INFO, "batches", fields)


class _BatchTotals:
    """Sums over one step's batches since its last log line."""

    def __init__(self) -> None:
        self._since = 0.0
        self._last: BatchEvent | None = None
        self.counts: Counter[str] = Counter()

    def add(self, event: BatchEvent, now: float) -> None:
        """Add a batch."""
        self._since = self._since if self.counts else now
        self._last = event
        self.counts.update(batches=1, **_counts(event))

    def take(self, now: float) -> dict[str, Any]:
        """Return the fields of a log line, and reset the sums."""
        assert self._last is not None, "at least one batch was added"
        fields = {"step": self._last.step, **self.counts, "seconds": round(now - self._since, 1), **_gauges(self._last)}
        self.counts = Counter()
        return fields


def _batch_fields(event: BatchEvent) -> dict[str, Any]:
    seconds = {f"{part}_s": round(value, 4) for part, value in event.seconds.items()}
    return {"step": event.step, **_counts(event), **_gauges(event), **seconds}


def _counts(event: BatchEvent) -> dict[str, int]:
    counts = {"records": event.records, **event.verdicts, "rejected": event.rejected, "repeated": event.repeated}
    return {name: count for name, count in counts.items() if count}


def _gauges(event: BatchEvent) -> dict[str, int]:
    """Values as of the batch, which are not summed."""
    lag = sum(event.lag.values()) if event.lag else None
    gauges = {"sequence": event.sequence, "entries": event.entries, "lag": lag}
    return {name: value for name, value in gauges.items() if value is not None}


def _log(level: int, event: str, fields: Mapping[str, Any]) -> None:
    _LOG.log(level, "%s", event, extra={"facts": dict(fields)})


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return getattr(record, "facts", {})


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())


def _quoted(value: Any) -> str:
    """Return `value` as text, quoted if it could be confused with the next field."""
    if isinstance(value, float):
        return f"{value:.3g}"
    text = str(value)
    return text if text and not any(c in text for c in ' ="\n') else msgspec.json.encode(text).decode()
