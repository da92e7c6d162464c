"""A page as a row of the log, and back."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.decider import Decision
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Distance, Verdict, VerdictKind
from dedup_service.runtime.embedded.database import Database, StateDamagedError, insert_rows
from dedup_service.runtime.embedded.journal import open_header
from dedup_service.runtime.embedded.journal_reader import (
    INSERT_PAGE,
    VERDICT_COLUMNS,
    VERDICTS,
    DecidedPage,
    page_row,
    verdict_of,
)
from dedup_service.runtime.embedded.state import State

from .prepared import SPACE, SPACE_ID, prepared

texts = st.text(st.characters(codec=None), max_size=6)  # lone surrogates and NUL included
maybe_texts = st.one_of(st.none(), texts)
bits = st.one_of(st.none(), st.integers(0, 64))
verdicts = st.builds(
    Verdict,
    sequence=st.just(9),
    id=texts,
    url=texts,
    kind=st.sampled_from(VerdictKind),
    space=st.just("s"),
    distance=st.builds(Distance, bits, bits),
    score=st.one_of(st.none(), st.floats(0, 1)),
    reason=maybe_texts,
).flatmap(
    lambda verdict: st.one_of(
        st.just(verdict),
        st.builds(lambda id_, url: replace(verdict, duplicate_of=id_, duplicate_of_url=url), texts, texts),
    )
)


def row_of(
    verdict: Verdict, record: bytes, original: int | None = None, canonical_url: str = "", title: str = ""
) -> DecidedPage:
    """A decided page with this verdict."""
    page = Page(url=verdict.url, canonical_url=canonical_url, id=verdict.id, title=title)
    return DecidedPage(
        PreparedPage(page, Fingerprint(1 << 63, None), None),
        Decision(verdict, original=original),
        record,
    )


@given(verdicts, texts, texts)
def test_a_verdict_survives_the_database(verdict: Verdict, canonical_url: str, title: str) -> None:
    """Every field of a verdict reads back unchanged, whatever its strings contain."""
    original = None if verdict.duplicate_of is None else 4
    pages = [row_of(verdict, b"r", original, canonical_url, title)]
    if verdict.duplicate_of is not None and verdict.duplicate_of_url is not None:
        kept = replace(verdict, sequence=4, id=verdict.duplicate_of, url=verdict.duplicate_of_url)
        pages.append(row_of(kept, b"kept"))
    database = Database(None)
    with database.transaction() as connection:
        open_header(connection, "memory", "s", {}, "{}")
        insert_rows(connection, *INSERT_PAGE, map(page_row, pages))
    row = database.first(f"SELECT {VERDICT_COLUMNS} FROM {VERDICTS} WHERE page.record = ?", b"r")
    database.close()
    assert row is not None
    assert verdict_of(row, "s") == verdict


def test_a_reason_that_names_a_page_of_any_name_is_stored(tmp_path: Path) -> None:
    """A lone surrogate in an id does not stop the stream, and taking the page down erases it from the reason."""
    rule = replace(rule_for(), guards=Guards(max_pages=1))
    state = State(tmp_path, SPACE_ID, SPACE, rule)
    pages = [prepared(f"https://{number}.example/1", 1) for number in range(5)]
    first = replace(pages[0], page=replace(pages[0].page, id="the first \ud800"))
    verdict = state.decide([(page, None) for page in (first, *pages[1:])])[-1]
    assert verdict.kind is VerdictKind.UNDECIDED
    assert verdict.reason is not None
    assert "the first \ud800" in verdict.reason
    assert state.journal.log.verdict_at(verdict.sequence) == verdict
    state.retract("https://0.example/1", "\ud800 asked for it")
    after = state.journal.log.verdict_at(verdict.sequence).reason
    assert after is not None
    assert "the first" not in after
    state.close()


def test_a_verdict_that_was_never_written_is_damage(tmp_path: Path) -> None:
    """A changed bit in a value is no verdict of another kind, and no traceback."""
    state = State(tmp_path, SPACE_ID, SPACE)
    state.decide([(prepared("https://a.example/1", 1), b"one")])
    state.journal.database.connection.execute("UPDATE log SET verdict = 'uniqud' WHERE sequence = 1")
    with pytest.raises(StateDamagedError, match=r"verdict 'uniqud' at record 1.*restore the state folder"):
        state.verdict_of(b"one")
    state.close()
