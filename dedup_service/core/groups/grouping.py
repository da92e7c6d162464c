"""Pages of a log in groups: each kept page with its copies.

A page that begins an entry begins a group: `unique`, `undecided`, and `updated`, whose text is another one from then
on. A `duplicate`, an `unchanged` visit and a visit by claim join the group of the page that their verdict names, which
always began one. So every page of a log is in exactly one group, and a group is known from the page alone, whatever
comes later: an entry that is removed or expires leaves its group as it is, and the next page of that text begins
another.

A group that a crawler trap filled may have a million members. `grouped` takes them in order and keeps so many; of the
rest it counts the URLs, some 100 bytes each.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from dedup_service.core.groups.canonical import CanonicalPolicy, is_on_host
from dedup_service.core.groups.member import GroupMember
from dedup_service.core.url import url_hash
from dedup_service.core.verdict import Verdict, VerdictKind

MAX_MEMBERS = 10_000
"""Members of a group that are listed: some 10 MB in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageGroup:
    """A kept page with its copies.

    sequence: of the page that began it, which names the group. follows: the group that the URL of that page was in
    before its text changed, or None. size: different URLs in the group, without those that were retracted or never
    passed on. records: pages of the log that are in it, repeated visits included. canonical: the page that stands for
    it; None if none can. members: in order of the log. omitted: later ones that are not listed.
    """

    sequence: int
    follows: int | None
    size: int
    records: int
    canonical: GroupMember | None
    members: tuple[GroupMember, ...]
    omitted: int = 0


def group_of(verdict: Verdict, original: int | None) -> int:
    """Return the group of a page: the sequence of the page that began it.

    original: sequence of the page that the verdict names, or None.
    """
    begins = original is None or (verdict.kind is VerdictKind.UPDATED and not verdict.by_claim)
    return verdict.sequence if begins or original is None else original


def grouped(
    members: Iterable[tuple[int, GroupMember]],
    policy: CanonicalPolicy,
    *,
    min_size: int = 0,
    host: str | None = None,
    max_members: int = MAX_MEMBERS,
) -> Iterator[PageGroup]:
    """Yield groups in order of their sequence.

    Args:
        members: Pages with their groups, in order of group, then of sequence.
        policy: Which page stands for a group.
        min_size: Least number of URLs of a group that is yielded; 0 is also one of which all pages were retracted.
        host: Only groups that have a page on this host (`canonical.host_of`) or below it.
        max_members: Members that are listed of each group.
    """
    for sequence, pages in groupby(members, key=itemgetter(0)):
        group, has_host = _group(sequence, (member for _, member in pages), policy, host, max_members)
        if group.size >= min_size and has_host:
            yield group


def _group(
    sequence: int, members: Iterable[GroupMember], policy: CanonicalPolicy, host: str | None, max_members: int
) -> tuple[PageGroup, bool]:
    """Return a group, and whether it has a page on the host."""
    listed: list[GroupMember] = []
    urls: set[int] = set()
    canonical, place, follows = None, None, None
    records, has_host = 0, host is None
    for member in members:
        records += 1
        if len(listed) < max_members:
            listed.append(member)
        if member.sequence == sequence:
            follows = member.original
        if member.removed is None or not member.removed.is_gone:
            urls.add(url_hash(member.canonical_url))
        has_host = has_host or (host is not None and is_on_host(member, host))
        own_place = policy.place(member)
        if own_place is not None and policy.is_before(own_place, place):
            canonical, place = member, own_place
    group = PageGroup(
        sequence=sequence,
        follows=follows,
        size=len(urls),
        records=records,
        canonical=canonical,
        members=tuple(listed),
        omitted=records - len(listed),
    )
    return group, has_host
