"""Pages that candidates are told of before they are decided."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dedup_service.core.decision.candidates import LocalCandidates
from dedup_service.core.decision.page_columns import PageColumns
from dedup_service.core.page import PreparedPage


@contextmanager
def announced(
    candidates: LocalCandidates,
    pages: Sequence[tuple[int, PreparedPage]],
    ordinal: int,
    *,
    urls: Sequence[int] | None = None,
    judged: bool = True,
) -> Iterator[None]:
    """Announce pages with their sequences. ordinal: of the first. urls: hashes of their URLs instead of their own."""
    columns = PageColumns.of_pages(pages, ordinal)
    if urls is not None:
        columns.rows["url_hash"] = urls
    candidates.announce(columns, judged=judged)
    yield
    candidates.finish()
