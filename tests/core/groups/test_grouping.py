"""Pages in groups."""

from dataclasses import replace

import pytest

from dedup_service.core.groups.canonical import canonical_policy
from dedup_service.core.groups.grouping import PageGroup, group_of, grouped
from dedup_service.core.groups.member import GroupMember, Removal
from dedup_service.core.verdict import Verdict, VerdictKind, visit_by_claim_reason
from tests.core.groups.test_canonical import member

EARLIEST = canonical_policy("earliest")


def verdict(kind: VerdictKind, reason: str | None = None) -> Verdict:
    """A verdict on the page at 9."""
    return Verdict(sequence=9, id="a", url="a", kind=kind, space="s", reason=reason)


def test_a_page_begins_a_group_or_joins_that_of_the_page_it_names() -> None:
    """An update of its own URL begins one; a visit by claim, which has no entry, joins one."""
    assert group_of(verdict(VerdictKind.UNIQUE), None) == 9
    assert group_of(verdict(VerdictKind.UNDECIDED), None) == 9
    assert group_of(verdict(VerdictKind.DUPLICATE), 4) == 4
    assert group_of(verdict(VerdictKind.UNCHANGED), 4) == 4
    assert group_of(verdict(VerdictKind.UPDATED), 4) == 9
    assert group_of(verdict(VerdictKind.UPDATED, visit_by_claim_reason("other body")), 4) == 4


def groups_of(*rows: tuple[int, GroupMember], **more: object) -> list[PageGroup]:
    """The groups of some pages."""
    return list(grouped(rows, EARLIEST, **more))  # type: ignore[arg-type]


def test_a_group_counts_urls_and_lists_pages() -> None:
    """A repeated visit is a record, not another URL; a page that is gone is no URL."""
    first = member(1, "https://a.example/1")
    again, copy = replace(first, sequence=2), member(3, "https://b.example/1")
    gone = member(4, "https://c.example/1", removed=Removal.RETRACTION)
    (found,) = groups_of((1, first), (1, again), (1, copy), (1, gone))
    assert (found.sequence, found.size, found.records, found.omitted) == (1, 2, 4, 0)
    assert (found.members, found.canonical, found.follows) == ((first, again, copy, gone), first, None)


def test_a_group_that_begins_with_an_update_names_the_one_that_it_follows() -> None:
    """So does none whose first record is deleted."""
    updated, copy = member(5, kind=VerdictKind.UPDATED, original=1), member(6, original=5)
    headless = member(9, original=8)
    assert [(group.sequence, group.follows) for group in groups_of((5, updated), (5, copy), (8, headless))] == [
        (5, 1),
        (8, None),
    ]


def test_groups_are_chosen_by_size_and_host() -> None:
    """The host may be that of any member, also of one that is not listed."""
    rows = [(1, member(1, "https://a.example/")), (1, member(2, "https://b.example/")), (3, member(3))]
    assert [group.sequence for group in groups_of(*rows, min_size=2)] == [1]
    assert [group.sequence for group in groups_of(*rows, host="b.example", max_members=1)] == [1]
    assert groups_of() == []


@pytest.mark.parametrize("policy", ["earliest", "longest"])
def test_members_beyond_the_limit_are_counted(policy: str) -> None:
    """They are still URLs, and may stand for the group."""
    pages = [(1, member(at, f"https://a.example/{at}", letters=at)) for at in range(1, 101)]
    (group,) = grouped(pages, canonical_policy(policy), max_members=10)
    assert (group.size, group.records, len(group.members), group.omitted) == (100, 100, 10, 90)
    assert group.canonical is not None
    assert group.canonical.sequence == (1 if policy == "earliest" else 100)
