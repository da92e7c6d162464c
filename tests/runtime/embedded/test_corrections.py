"""Corrections in an embedded state: in force from then on and after a restart, and reported to observers."""

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.embedded.corrections import Correction, read_detail, with_force, written_detail
from dedup_service.runtime.embedded.state import State
from dedup_service.runtime.events import Observer, RemovalEvent
from tests.runtime.embedded.prepared import SPACE, SPACE_ID, kill, prepared

A, B, C = "https://a.example/", "https://b.example/", "https://c.example/"
TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
RECORDS = st.builds(
    CorrectionRecord,
    url=st.sampled_from("abc"),
    original=st.sampled_from("xyz"),
    duplicate=st.booleans(),
    reason=st.sampled_from(string.ascii_letters),
)


class Removals(Observer):
    """An observer that keeps removals."""

    def __init__(self) -> None:
        self.events: list[RemovalEvent] = []

    def removed(self, event: RemovalEvent) -> None:
        self.events.append(event)


def opened(folder: Path | None, *observers: Removals) -> State:
    """The state in a folder."""
    return State(folder, SPACE_ID, SPACE, observers=observers)


def kinds(state: State, *pages: tuple[str, int]) -> list[VerdictKind]:
    """The verdicts on pages, by address and story."""
    return [verdict.kind for verdict in state.decide([(prepared(url, story), None) for url, story in pages])]


@given(st.builds(CorrectionRecord, url=TEXT, original=TEXT, duplicate=st.booleans(), reason=TEXT), st.none() | TEXT)
def test_a_written_correction_reads_back(record: CorrectionRecord, by: str | None) -> None:
    """All fields are equal."""
    assert read_detail(7, written_detail(record, by, 1.5)) == Correction(sequence=7, record=record, at=1.5, by=by)


@given(st.lists(RECORDS, max_size=12))
def test_the_last_correction_is_in_force(records: list[CorrectionRecord]) -> None:
    """It is the last one on a pair, and the last one that calls a page a duplicate of any page."""
    found = with_force(Correction(sequence=at, record=record) for at, record in enumerate(records))
    for at, correction in enumerate(found):
        record, later = correction.record, records[at + 1 :]
        overruled = any((other.url, other.original) == (record.url, record.original) for other in later)
        elsewhere = record.duplicate and any(other.url == record.url and other.duplicate for other in later)
        assert correction.in_force == (not overruled and not elsewhere)


@pytest.mark.parametrize("stored", [True, False])
def test_not_a_duplicate_is_unique_from_then_on(tmp_path: Path, *, stored: bool) -> None:
    """The earlier verdict stays; the next delivery is compared with all others; a later correction reverses it."""
    state = opened(tmp_path if stored else None)
    assert kinds(state, (A, 1), (B, 1)) == ["unique", "duplicate"]
    correction = state.correct(CorrectionRecord(B, A, False, "two events"), author="me", timestamp=5.0)
    assert (correction.sequence, correction.by, correction.at) == (3, "me", 5.0)
    assert state.journal.log.verdict_at(2).kind is VerdictKind.DUPLICATE  # type: ignore[union-attr]
    assert kinds(state, (B, 1), (C, 1)) == ["unique", "duplicate"]
    state.correct(CorrectionRecord(B, A, True, "after all"))
    assert kinds(state, (B, 1)) == ["duplicate"]
    state.close()


def test_a_page_called_a_duplicate_is_removed(tmp_path: Path) -> None:
    """Its entry is removed and reported; from then on the page is a duplicate, whatever its text."""
    removals = Removals()
    state = opened(tmp_path, removals)
    assert kinds(state, (A, 1), (B, 2)) == ["unique", "unique"]
    state.correct(CorrectionRecord(B, A, True, "translated"))
    assert removals.events == [RemovalEvent("correction", B)]
    assert state.journal.entries == 1
    assert not state.held().has(2)
    (verdict,) = state.decide([(prepared(B, 9), None)])
    assert (verdict.kind, verdict.duplicate_of_url) == (VerdictKind.DUPLICATE, A)
    assert kinds(state, (C, 2)) == ["unique"]
    state.close()


@pytest.mark.parametrize("closed", [True, False])
def test_corrections_hold_after_a_restart(tmp_path: Path, *, closed: bool) -> None:
    """Entries, answers and audit trail are the same after a commit and, after a kill, without one."""
    state = opened(tmp_path)
    kinds(state, (A, 1), (B, 1), (C, 2))
    state.correct(CorrectionRecord(B, A, False, "no"), author="x", timestamp=1.0)
    state.correct(CorrectionRecord(C, A, True, "yes"))
    trail = state.journal.log.corrections()
    if closed:
        state.close()
    else:
        kill(state)
    again = opened(tmp_path)
    assert again.journal.log.corrections() == trail
    assert [at.sequence for at in trail] == [4, 5]
    assert again.journal.entries == 1
    assert kinds(again, (B, 1), (C, 2)) == ["unique", "duplicate"]
    again.close()
