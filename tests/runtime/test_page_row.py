"""A page's record as a row, and back."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision import Decision
from dedup_service.core.fingerprint import Fingerprint, PreparedPage
from dedup_service.core.page import Page
from dedup_service.core.verdict import Distance, Verdict, VerdictKind
from dedup_service.runtime.database import Database
from dedup_service.runtime.page_row import INSERT_PAGE, VERDICT_COLUMNS, DecidedPage, page_row, verdict_of
from dedup_service.runtime.schema import open_header

texts = st.text(st.characters(codec=None), max_size=6)  # lone surrogates and NUL included
bits = st.one_of(st.none(), st.integers(0, 64))
of = st.one_of(st.just((None, None)), st.tuples(texts, texts))


@given(texts, texts, st.sampled_from(VerdictKind), of, bits, bits, st.one_of(st.none(), st.floats(0, 1)), texts)
def test_a_verdict_survives_the_database(
    page_id: str,
    url: str,
    kind: VerdictKind,
    of: tuple[str | None, str | None],
    words: int | None,
    body: int | None,
    score: float | None,
    reason: str,
) -> None:
    """Every field of a verdict reads back as it was handed out, whatever its strings hold."""
    verdict = Verdict(
        sequence=9,
        id=page_id,
        url=url,
        kind=kind,
        space="s",
        duplicate_of=of[0],
        duplicate_of_url=of[1],
        distance=Distance(words, body),
        score=score,
        reason=reason,
    )
    page = Page(url=url, canonical_url=page_id, id=page_id, title=reason)
    decided = DecidedPage(PreparedPage(page, Fingerprint(1 << 63, None), None), Decision(verdict, kept=True), b"r")
    database = Database(None)
    with database.transaction() as connection:
        open_header(connection, "memory", "s", {}, "{}")
        connection.execute(INSERT_PAGE, page_row(decided))
    row = database.first(f"SELECT {VERDICT_COLUMNS} FROM log WHERE record = ?", b"r")
    database.close()
    assert row is not None
    assert verdict_of(row, "s") == verdict
