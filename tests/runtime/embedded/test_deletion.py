"""Old records of pages without an entry are deleted, and nothing that a restore or a verdict needs."""

import logging
import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Verdict
from dedup_service.runtime.embedded.state import State, StateSettings

from .prepared import SPACE, SPACE_ID, lose_pages, prepared

SOON = StateSettings(IndexLayout(window=8), snapshot_every=10, journal_days=1)
FOREVER = StateSettings(IndexLayout(window=8), snapshot_every=10)
WIDE = StateSettings(snapshot_every=10, journal_days=1)
"""With a window that no page leaves, so the journal has all evidence."""


def opened(folder: Path | None, settings: StateSettings = SOON) -> State:
    """An open state."""
    if folder is not None:
        folder.mkdir(exist_ok=True)
    return State(folder, SPACE_ID, SPACE, None, settings)


def make_old(state: State) -> None:
    """Let all records so far be of 1970."""
    with state.journal.database.transaction() as connection:
        connection.execute("DELETE FROM hour")
        connection.execute("INSERT INTO hour VALUES (0, ?)", (state.journal.sequence,))


def decide(state: State, pages: Iterable[PreparedPage], batch: int = 5) -> list[Verdict]:
    """The verdicts on `pages`, each with its URL and text as delivery id."""
    verdicts: list[Verdict] = []
    some = [(page, f"{page.page.url} {page.body_hash}".encode().ljust(16)[:64]) for page in pages]
    for start in range(0, len(some), batch):
        verdicts += state.decide(some[start : start + batch])
    return verdicts


def sequences(state: State) -> list[int]:
    """The sequences of all rows."""
    return [row[0] for row in state.journal.database.rows("SELECT sequence FROM log ORDER BY sequence")]


def copies(number: int) -> PreparedPage:
    """A copy of one story at an address that was not seen before."""
    return prepared(f"https://a.example/copy/{number}", 1)


def visits(number: int) -> PreparedPage:
    """A page that is unchanged, again."""
    return prepared(f"https://a.example/{number % 3}", number % 3)


def updates(number: int) -> PreparedPage:
    """A page with another text at each visit."""
    return prepared("https://a.example/news", number)


@pytest.mark.parametrize("page", [copies, visits, updates])
def test_without_a_state_folder_memory_grows_by_kept_pages_only(page: Callable[[int], PreparedPage]) -> None:
    """Neither the rows nor the bytes of the journal grow with 2,000 copies, visits or updates more."""
    state = opened(None, StateSettings(IndexLayout(window=8), memory_records=500))
    sizes = []
    for start in range(0, 6000, 1000):
        for first in range(start, start + 1000, 100):
            state.decide([(page(number), b"%16d" % number) for number in range(first, first + 100)])
        used = "SELECT (SELECT * FROM pragma_page_count) - (SELECT * FROM pragma_freelist_count)"
        sizes.append((len(sequences(state)), state.journal.database.rows(used)[0][0]))
    assert sizes[5][0] <= sizes[3][0] + 1 < 1500
    assert sizes[5][1] <= 1.05 * sizes[3][1]


def test_a_state_in_memory_knows_every_kept_page_and_the_latest_copies() -> None:
    """A copy long ago is judged again if it is delivered again; a kept page has its verdict, name and record."""
    state = opened(None, StateSettings(IndexLayout(window=8), memory_records=20))
    story = prepared("https://a.example/first", 1)
    first, second, *_ = decide(state, [story, copies(0), *(copies(number) for number in range(1, 100))])
    assert decide(state, [story]) == [first]
    assert decide(state, [copies(99)])[0].sequence == 101
    again = decide(state, [copies(0)])[0]
    assert (again.kind, again.duplicate_of_url, again.sequence) == (second.kind, "https://a.example/first", 102)
    assert state.retract("https://a.example/first").sequence == 1


def random_pages(seed: int) -> list[PreparedPage]:
    """Pages of few stories and versions at few addresses: every kind of verdict comes about."""
    choice = random.Random(seed)
    return [
        prepared(f"https://a.example/{choice.randrange(12)}", choice.randrange(9), version=choice.randrange(3))
        for _ in range(60)
    ]


def test_what_a_restore_needs_stays(tmp_path: Path) -> None:
    """Rows of kept pages, corrections, retractions and policies stay; without a commit after them, so do all."""
    state = opened(tmp_path / "s", StateSettings(IndexLayout(window=8), snapshot_every=1000, journal_days=1))
    decide(state, [prepared("https://a.example/1", 1), *map(copies, range(5)), prepared("https://a.example/2", 2)])
    state.correct(CorrectionRecord("https://a.example/x", "https://a.example/1", duplicate=True, reason=""))
    state.retract("https://a.example/2")
    decide(state, map(copies, range(5, 9)))
    make_old(state)
    decide(state, [copies(9)])
    assert sequences(state) == list(range(15))  # nothing covers them yet
    state.close()
    state = opened(tmp_path / "s")
    decide(state, [copies(10)])
    assert sequences(state) == [0, 1, 8, 9, 14, 15]
    state.close()


def test_a_clock_that_was_not_set_for_a_while_deletes_nothing_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a start in 1970, the records before it are not 50 years old."""
    real = time.time()
    for first, now in enumerate((real, 1000.0, real)):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        state = opened(tmp_path / "s")
        decide(state, map(copies, range(50 * first, 50 * first + 50)))
        last = sequences(state)
        state.close()
    assert last == list(range(151))


def test_an_update_names_the_page_that_it_replaced(tmp_path: Path) -> None:
    """Its verdict is read back with the names of a page whose row is deleted."""
    state = opened(tmp_path / "s")
    versions = [prepared("https://a.example/1", story, page_id=f"id {story}") for story in range(12)]
    verdicts = decide(state, versions)
    make_old(state)
    decide(state, map(copies, range(2)))
    state.close()
    state = opened(tmp_path / "s")
    decide(state, [copies(2)])
    assert 11 not in sequences(state)
    assert verdicts[-1].duplicate_of == "id 10"
    assert decide(state, versions[-1:]) == verdicts[-1:]
    assert state.journal.log.visits("https://a.example/1") == verdicts[-1:]
    state.close()


def test_without_its_pages_every_kept_page_is_still_known(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A warning says what is not: what guards and the hosts' own text were counted from."""
    state = opened(tmp_path / "s", WIDE)
    decide(state, random_pages(2))
    make_old(state)
    decide(state, map(copies, range(2)))
    state.close()
    state = opened(tmp_path / "s", WIDE)
    decide(state, map(copies, range(2, 13)))
    held = {entry.url_hash: entry.body_hash for entry in state.held().entries()}
    state.close()
    lose_pages(tmp_path / "s")
    with caplog.at_level(logging.WARNING):
        state = opened(tmp_path / "s")
    assert "guards and the hosts' own text are counted again" in caplog.text
    assert {entry.url_hash: entry.body_hash for entry in state.held().entries()} == held
    state.close()


def plans_of(state: State, work: Callable[[], object]) -> list[str]:
    """The steps of the query plans of all SQL statements of `work`."""
    statements: list[str] = []
    connection = state.journal.database.connection
    connection.set_trace_callback(statements.append)
    work()
    connection.set_trace_callback(None)
    asked = [sql for sql in map(str.strip, statements) if sql.startswith(("SELECT", "DELETE", "UPDATE"))]
    assert asked
    return [row[3] for sql in asked for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]


def test_retract_by_id_and_why_never_scan_the_log(tmp_path: Path) -> None:
    """Every query of the journal looks its rows up; only what is rare in the log is read in full.

    What other pages say of one that was taken down is the exception: it takes one pass, however many were.
    """
    state = opened(tmp_path / "s", FOREVER)
    decide(state, random_pages(1))
    log = state.journal.log
    state.correct(CorrectionRecord("https://a.example/x", "https://a.example/1", duplicate=True, reason=""))
    calls: list[Callable[[], object]] = [
        lambda: state.decide([(prepared("https://b.example/1", 99, page_id="an id"), b"a delivery of 16")]),
        lambda: state.retract("an id", mentions=False),
        lambda: state._why_not("an id"),
        lambda: log.visits("https://a.example/1"),
        lambda: log.verdict_at(3),
        lambda: log.retraction_of(3),
        lambda: log.verdicts_of_deliveries([b"1", b"2"]),
        log.last_sequence,
        log.policy,
        log.guarded_since,
        log.corrections,
        lambda: log.tail(3),
        lambda: log.name(3),
        lambda: list(log.records_after(50)),
    ]
    for call in calls:
        for step in plans_of(state, call):
            assert not step.startswith("SCAN") or "log_rare" in step or step.startswith("SCAN CONSTANT"), step
    state.close()


def test_deletion_looks_its_rows_up(tmp_path: Path) -> None:
    """Its queries cost what they delete, however long the log is."""
    state = opened(tmp_path / "s")
    decide(state, random_pages(1))
    state.close()
    state = opened(tmp_path / "s")
    make_old(state)
    for step in plans_of(state, lambda: state.decide([(copies(1), None)])):
        assert not step.startswith("SCAN") or "log_rare" in step, step
    assert len(sequences(state)) < 50
    state.close()


def test_a_rule_without_guards_is_followed_over_deleted_records(tmp_path: Path) -> None:
    """A change of policy among records that are deleted stays in force."""
    state = State(tmp_path, SPACE_ID, SPACE, None, SOON)
    decide(state, random_pages(1)[:20])
    state.close()
    state = State(tmp_path, SPACE_ID, SPACE, rule_for(k=3), SOON)
    decide(state, random_pages(2)[:20])
    make_old(state)
    decide(state, map(copies, range(12)))
    state.close()
    state = opened(tmp_path)
    assert state.rule == rule_for(k=3)
    state.close()
