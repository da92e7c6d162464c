"""Journal and decider together: verdicts, repeated deliveries, retraction, change of rule, a full disk."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from dedup_service.core.errors import StateError
from dedup_service.core.rules.rule import DistanceBound, MatchRule
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.embedded.database import (
    ForeignStateError,
    StateClosedError,
    StateDamagedError,
    StateFullError,
)
from dedup_service.runtime.embedded.state import State

from .prepared import SPACE, SPACE_ID, prepared

U, D, SAME, NEW, NONE = VerdictKind


def opened(folder: Path | None, **kwargs: object) -> State:
    """The state in `folder`, in the tests' space."""
    return State(folder, SPACE_ID, SPACE, **kwargs)  # type: ignore[arg-type]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    """A new state on disk, closed at the end."""
    state = opened(tmp_path)
    yield state
    state.close()


def test_a_repeated_delivery_gets_the_verdict_it_had(tmp_path: Path) -> None:
    """It gives an equal verdict and no new log record: in the same batch, later, and after reopening."""
    first = opened(tmp_path)
    page, other = prepared("u1", 1, page_id="one"), prepared("u2", 1, page_id="\ud800 half a pair")
    verdicts = first.decide([(page, b"a"), (other, b"b"), (page, b"a")])
    assert verdicts[2] == verdicts[0]
    assert first.decide([(page, b"a")]) == verdicts[:1]
    first.close()
    second = opened(tmp_path)
    assert second.decide([(other, b"b"), (page, b"a")]) == [verdicts[1], verdicts[0]]
    assert second.verdict_of(b"a") == verdicts[0]
    assert second.verdict_of(b"never") is None
    assert second.journal.sequence == 2
    second.close()


def test_after_a_retraction_later_copies_are_unique(tmp_path: Path) -> None:
    """A page retracted by URL, id or sequence is removed from index and known URLs, also after reopening."""
    for reference in ("u1", "one", 1):
        folder = tmp_path / str(reference)
        folder.mkdir()
        first = opened(folder)
        kept = first.decide([(prepared("u1", 1, page_id="one"), None)])[0]
        assert first.retract(reference) == kept
        assert first.journal.texts.get(1) is None
        first.close()
        second = opened(folder)
        again = second.decide([(prepared("u2", 1), None), (prepared("u1", 1), None)])
        assert [(v.sequence, v.kind) for v in again] == [(3, U), (4, D)]
        second.close()


def test_an_impossible_retraction_says_why(state: State) -> None:
    """The message distinguishes unknown pages, pages not kept and pages retracted before; nothing changes."""
    state.decide([(prepared("u1", 1), None), (prepared("u2", 1), None)])
    with pytest.raises(StateError, match="no page 'elsewhere' is in the log"):
        state.retract("elsewhere")
    with pytest.raises(StateError, match="its verdict was duplicate"):
        state.retract("u2")
    state.retract("u1")
    with pytest.raises(StateError, match="retracted already, by record 3"):
        state.retract("u1")
    with pytest.raises(StateError, match="retracted already, by record 3"):
        state.retract(1)
    assert state.decide([(prepared("u3", 3), None)])[0].sequence == 4


def test_a_change_of_rule_is_recorded_and_applies_to_later_pages(tmp_path: Path) -> None:
    """Earlier verdicts stay; opened without a rule, the state keeps the last one."""
    exact, near = MatchRule((DistanceBound(body=0),)), MatchRule((DistanceBound(body=3),))
    first = opened(tmp_path, rule=exact)
    verdicts = first.decide([(prepared("u1", 1), b"1"), (prepared("u2", 1, version=1), b"2")])
    first.close()
    opened(tmp_path, rule=near).close()
    third = opened(tmp_path)
    assert third.rule == near
    assert third.decide([(prepared("u2", 1, version=1), b"2")]) == [verdicts[1]]
    assert [v.kind for v in verdicts] == [U, U]
    later = third.decide([(prepared("u3", 1, version=2), None)])[0]
    assert (later.sequence, later.kind) == (4, D)
    third.close()


@pytest.mark.parametrize(
    ("version", "says"),
    [(99, r"format version 99.*reads 4.*update twinsieve"), (1, r"format version 1, .*reads 4.*start a new state")],
)
def test_another_format_is_refused_with_both_named(tmp_path: Path, version: int, says: str) -> None:
    """The message names both versions and what to do: version 1 has no keys, ordinals or texts to compare with."""
    state = opened(tmp_path)
    with state.journal.database.transaction() as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'format_version'", (str(version),))
    state.close()
    with pytest.raises(ForeignStateError, match=says):
        opened(tmp_path)


def test_a_file_that_is_not_a_journal_is_reported(tmp_path: Path) -> None:
    """A damaged journal is an error of the state, not of SQLite."""
    (tmp_path / "journal.sqlite").write_bytes(b"certainly not a database" * 100)
    with pytest.raises(StateDamagedError, match=r"journal\.sqlite is not a readable journal"):
        opened(tmp_path)


def test_a_full_disk_stops_the_state_without_a_partial_batch(tmp_path: Path) -> None:
    """After reopening, earlier batches are there and the failed one is not; the stopped state gave no verdict."""
    first = opened(tmp_path)
    given = first.decide([(prepared("u1", 1), b"1")])
    pages = first.journal.database.rows("PRAGMA page_count")[0][0]
    first.journal.database.rows(f"PRAGMA max_page_count = {pages + 2}")
    large = [
        (prepared(f"v{n}", n, text=f"{n} " + "many words " * 999, page_id="x" * 3000), b"v%d" % n) for n in range(9)
    ]
    with pytest.raises(StateFullError, match=r"disk full.*free space") as full:
        first.decide(large)
    assert full.value.retryable
    with pytest.raises(StateClosedError, match="open it again"):
        first.decide([(prepared("u1", 1), b"1")])
    first.close()

    second = opened(tmp_path)
    assert second.journal.sequence == 1
    assert second.decide([(prepared("u1", 1), b"1")]) == given
    assert [verdict.kind for verdict in second.decide(large)] == [U, D] + [U] * 7
    second.close()


def test_a_page_that_cannot_be_judged_is_kept_and_known(tmp_path: Path) -> None:
    """It matches no page but one with the same text, before and after a restore; the same visit again is unchanged."""
    first = opened(tmp_path)
    assert first.decide([(prepared("u1", 1, reason="too short", evidence=b""), None)])[0].kind is NONE
    first.close()
    second = opened(tmp_path)
    verdicts = second.decide(
        [(prepared("u2", 1, version=1), None), (prepared("u1", 1, reason="too short", evidence=b""), None)]
    )
    assert [v.kind for v in verdicts] == [U, SAME]
    copy = second.decide([(prepared("u3", 1, reason="too short", evidence=b""), None)])[0]
    assert (copy.kind, copy.duplicate_of, copy.reason) == (D, "u1", "same text")
    second.close()


def test_a_kept_page_that_is_missing_in_the_log_is_damage(tmp_path: Path) -> None:
    """A damaged file may have lost the row of an entry that the kept pages have."""
    state = opened(tmp_path)
    state.decide([(prepared("https://a.example/1", 1), None), (prepared("https://a.example/2", 2), None)])
    state.close()
    journal = sqlite3.connect(tmp_path / "journal.sqlite", isolation_level=None)
    journal.execute("DELETE FROM log WHERE sequence = 1")
    journal.close()
    state = opened(tmp_path)
    with pytest.raises(StateDamagedError, match=r"journal\.sqlite has no record 1"):
        state.decide([(prepared("https://a.example/3", 1), None)])
    state.close()
