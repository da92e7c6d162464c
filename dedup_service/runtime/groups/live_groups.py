"""The group of a page of an open filter, for the dashboard."""

from dedup_service.core.groups.canonical import CanonicalPolicy
from dedup_service.core.groups.grouping import PageGroup, group_of, grouped
from dedup_service.runtime.embedded.filter import NearDuplicateFilter, view_of
from dedup_service.runtime.explain.journal_pages import live_pages
from dedup_service.runtime.explain.page_source import UnknownPageError
from dedup_service.runtime.groups.journal_members import spool_group
from dedup_service.runtime.groups.spool import group_spool

MAX_SEARCHED = 10_000
"""Pages of a group that are read."""


class LiveGroups:
    """Groups of an open filter."""

    def __init__(self, dedup: NearDuplicateFilter) -> None:
        self._view = view_of(dedup)
        self._pages = live_pages(dedup)

    def find(
        self, reference: str | int, policy: CanonicalPolicy, *, max_members: int, max_pages: int = MAX_SEARCHED
    ) -> tuple[PageGroup, bool]:
        """Return the group of a page, and whether it has more pages than the `max_pages` that were read.

        reference: a URL or id, whose latest visit is meant, or a sequence. max_members: that are listed.
        UnknownPageError if the page is not in the log.
        """
        page = self._pages.find(reference)
        if page is None or page.verdict is None:
            raise UnknownPageError(f"no page {reference!r} is in the log: check its address")
        sequence = group_of(page.verdict, page.original)
        with group_spool(with_sentences=policy.asks_host_text) as spool:
            has_more = spool_group(self._view, self._pages.space_id, sequence, spool, max_pages)
            members = [row for row in spool.members() if row[0] == sequence]
        (group,) = grouped(members, policy, max_members=max_members)
        return group, has_more
