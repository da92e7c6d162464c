"""The log of a state is decided again under a rule, and nothing is written in its folder."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.embedded.dry_run import verdicts_under
from dedup_service.runtime.embedded.state import State, StateSettings

from .prepared import SPACE, SPACE_ID, kill, prepared

SETTINGS = StateSettings(IndexLayout(window=8), snapshot_every=10)
EXACT = rule_for("words", k=0)


def opened(folder: Path, rule: MatchRule | None = None, keep: Keep | None = None, *bases: Path) -> State:
    """An open state."""
    folder.mkdir(exist_ok=True)
    return State(folder, SPACE_ID, SPACE, rule, SETTINGS, keep=keep, bases=bases)


def decide(state: State, numbers: range) -> None:
    """Decide one page for each number; many are copies of earlier ones, some are updates, some too short.

    One page comes again and again.
    """
    state.decide(
        [(prepared("https://same.example/", 1000), None)]
        + [
            (
                prepared(
                    f"https://{n % 7}.example/{n % 126}",
                    n if n % 3 else n // 4,
                    version=n % 2,
                    page_id=f"id {n}",
                    reason=None if n % 11 else "too little text: 3 letters",
                    evidence=None if n % 11 else b"",
                ),
                None,
            )
            for n in numbers
        ]
    )


def worked(folder: Path, rule: MatchRule | None = None, keep: Keep | None = None, *bases: Path) -> State:
    """A state with copies, updates, a take-down, corrections and commits between them."""
    state = opened(folder, rule, keep, *bases)
    for start in range(0, 240, 6):
        decide(state, range(start, start + 6))
        kept = state.held().entries()
        if start == 60:
            state.retract(kept[-2].sequence)
        if start == 90:
            one, other = (state.name(entry.sequence)[1] for entry in kept[-2:])
            state.correct(CorrectionRecord(one, other, True, "seen"))
        if start == 120:
            duplicates = [v for n in range(110, 140) if (v := state.journal.log.verdict_at(n)) is not None]
            copy = next(v for v in duplicates if v.kind is VerdictKind.DUPLICATE)
            state.correct(CorrectionRecord(copy.url, copy.duplicate_of_url or "", False, "seen"))
    return state


def said(verdict: Verdict) -> tuple[str, str | None]:
    """What a verdict says of a page."""
    return verdict.kind, verdict.duplicate_of_url


@pytest.mark.parametrize("keep", [None, Keep(max_pages=25)])
@pytest.mark.parametrize("guards", [None, Guards(max_hosts=2)])
def test_the_rule_in_force_changes_no_verdict(tmp_path: Path, keep: Keep | None, guards: Guards | None) -> None:
    """With copies, updates, take-downs, corrections, guards and expiry; also while another process has the state."""
    rule = rule_for() if guards is None else replace(rule_for(), guards=guards)
    state = worked(tmp_path / "state", rule, keep)
    for _ in range(2):
        pairs = list(verdicts_under(tmp_path / "state", rule))
        assert [now for was, now in pairs if now is not None and said(now) != said(was)] == []
        assert len(pairs) == 280
        assert 0 < sum(now is None for _, now in pairs) < 140
        assert {was.kind for was, _ in pairs} >= set(VerdictKind) - ({VerdictKind.UPDATED} if keep else set())
        state.close()


def test_another_rule_says_what_it_had_said_from_the_start(tmp_path: Path) -> None:
    """As a second state says that had it from its first page on."""
    worked(tmp_path / "one").close()
    with closing(worked(tmp_path / "other", EXACT)) as other:
        pairs = [(was, now) for was, now in verdicts_under(tmp_path / "one", EXACT) if now is not None]
        pairs = pairs[: next(place for place, (was, _) in enumerate(pairs) if was.kind is VerdictKind.UPDATED)]
        assert any(now.kind is not was.kind for was, now in pairs)
        for _, now in pairs:  # without updates, which replace pages
            there = other.journal.log.verdict_at(now.sequence)
            assert there is not None
            assert said(now) == said(there)


def test_pages_of_bases_are_compared_with(tmp_path: Path) -> None:
    """Their copies are duplicates of them."""
    with closing(opened(tmp_path / "base")) as base:
        decide(base, range(60))
    state = opened(tmp_path / "state", None, None, tmp_path / "base")
    decide(state, range(30, 150))
    pairs = list(verdicts_under(tmp_path / "state", state.rule))
    assert [now for was, now in pairs if now is not None and now.kind is not was.kind] == []
    assert any(now.duplicate_of == "id 8" for _, now in pairs if now is not None)
    kill(state)


def test_nothing_is_written(tmp_path: Path) -> None:
    """The folder has the bytes that it had."""
    worked(tmp_path / "state").close()
    before = {path: path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()}
    assert len(list(verdicts_under(tmp_path / "state", EXACT))) == 280
    assert {path: path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()} == before
