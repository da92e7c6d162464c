"""Ids and URLs of prepared pages by sequence, which a decider otherwise reads from a journal."""

from collections.abc import Sequence

from dedup_service.core.page import PreparedPage


class PreparedNames:
    """Names of `pages`, whose sequences count from 1."""

    def __init__(self, pages: Sequence[PreparedPage]) -> None:
        self._pages = pages

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the page at `sequence`."""
        page = self._pages[sequence - 1].page
        return page.id, page.url
