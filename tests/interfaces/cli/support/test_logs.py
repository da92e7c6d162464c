"""Log lines as text and as JSON."""

import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest

from dedup_service.interfaces.cli.support import logs
from dedup_service.interfaces.cli.support.logs import QUIET, ServiceLog, configure_logging
from dedup_service.runtime.events import BatchEvent, ProblemEvent
from tests.hangs import wait_until


@pytest.fixture
def logging_to() -> Iterator[Callable[[str, str], io.StringIO]]:
    """A function that configures logging and returns its stream; the former configuration is restored."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in QUIET}

    def configure(level: str, log_format: str) -> io.StringIO:
        written = io.StringIO()
        configure_logging(level, log_format, written)
        return written

    yield configure
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, earlier in levels.items():
        logging.getLogger(name).setLevel(earlier)


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def batch(records: int = 5) -> BatchEvent:
    """A batch of the deciding step."""
    return BatchEvent(
        step="decide",
        records=records,
        seconds={"commit": 0.0123},
        verdicts={"unique": records - 1, "duplicate": 1},
        sequence=99,
        entries=42,
        lag={"pages-0": 3, "pages-1": 4},
    )


def test_a_json_line_has_the_event_s_fields(logging_to: Callable[[str, str], io.StringIO]) -> None:
    """A problem's step and kind are separate fields."""
    written = logging_to("info", "json")
    ServiceLog().problem(ProblemEvent("decide", "transaction_lost", "the transaction was lost"))
    line = json.loads(written.getvalue())
    assert line.pop("at").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": logs.__name__,
        "event": "the transaction was lost",
        "step": "decide",
        "kind": "transaction_lost",
    }


def test_a_text_line(logging_to: Callable[[str, str], io.StringIO]) -> None:
    """Values are quoted if they could be confused with the next field; line breaks are replaced."""
    written = logging_to("info", "text")
    facts = {"n": 1, "share": 0.123456, "why": "two words", "none": ""}
    logging.getLogger("elsewhere").warning("a\nb", extra={"facts": facts})
    _, _, rest = written.getvalue().partition(" ")
    assert rest == 'WARNING elsewhere: a b n=1 share=0.123 why="two words" none=""\n'


def test_an_exception_is_logged_with_its_traceback(logging_to: Callable[[str, str], io.StringIO]) -> None:
    """In JSON, it is a field of the same line."""
    written = logging_to("info", "json")
    try:
        int("broken")
    except ValueError:
        logging.getLogger("x").exception("it failed")
    assert "ValueError: invalid literal" in json.loads(written.getvalue())["trace"]


def test_batches_are_summed_up(logging_to: Callable[[str, str], io.StringIO]) -> None:
    """One line soon after the first of them with their sums, though no other follows; one at the end with the rest."""
    written, clock = logging_to("info", "json"), Clock()
    log = ServiceLog(summary_s=0.2, clock=clock)
    for now in (100.0, 104.0, 108.0, 112.0):
        clock.now = now
        log.batch(batch())
    wait_until(written.getvalue)
    log.batch(batch())
    log.close()
    first, last = map(json.loads, written.getvalue().splitlines())
    assert {name: first[name] for name in ("step", "batches", "records", "unique", "duplicate", "seconds", "lag")} == {
        "step": "decide",
        "batches": 4,
        "records": 20,
        "unique": 16,
        "duplicate": 4,
        "seconds": 12.0,
        "lag": 7,
    }
    assert (last["batches"], last["records"], last["sequence"], last["entries"]) == (1, 5, 99, 42)


def test_a_rejected_record_is_logged_with_its_place_and_reason(
    logging_to: Callable[[str, str], io.StringIO],
) -> None:
    """As a warning, at once."""
    written, log = logging_to("info", "json"), ServiceLog()
    place = "pages, partition 3, offset 41: not a page in JSON: `url` is empty"
    log.batch(BatchEvent(step="fingerprint", records=2, rejected=1, rejections=[place]))
    line = json.loads(written.getvalue())
    log.close()
    assert (line["level"], line["event"], line["kind"]) == ("warning", place, "rejected")
