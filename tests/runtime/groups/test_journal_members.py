"""Groups of a state folder, against what its verdicts say."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from dedup_service._native import PageText
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.groups.canonical import canonical_policy
from dedup_service.core.groups.grouping import PageGroup, grouped
from dedup_service.core.groups.member import GroupMember, Removal
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import Page
from dedup_service.core.rules.keep import Keep
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.groups.journal_members import spool_state
from dedup_service.runtime.groups.spool import group_spool
from tests.interfaces.cli.running import article


def page(number: int, text: str, **more: str | int) -> Page:
    """A page of a small site."""
    url = f"https://a.example/{number}"
    values = {"url": url, "canonical_url": url, "id": f"p{number}", "title": f"Story {number}"}
    return Page(**{**values, **more}, text=text)  # type: ignore[arg-type]


def members(folder: Path, *, with_sentences: bool = False) -> list[tuple[int, GroupMember]]:
    """The pages of a state with their groups."""
    with group_spool(with_sentences=with_sentences) as spool:
        spool_state(folder, spool, lambda _done, _total: None)
        return list(spool.members())


def groups(folder: Path) -> list[PageGroup]:
    """The groups of a state."""
    return list(grouped(members(folder), canonical_policy("earliest")))


def told(verdicts: Sequence[Verdict]) -> dict[int, int]:
    """The group of each page by what its verdict names: the latest page of that id which began one."""
    begun: dict[str, int] = {}
    found = {}
    for verdict in verdicts:
        begins = verdict.duplicate_of is None or (verdict.kind is VerdictKind.UPDATED and not verdict.by_claim)
        if begins:
            begun[verdict.id] = verdict.sequence
        found[verdict.sequence] = begun[verdict.id if begins or verdict.duplicate_of is None else verdict.duplicate_of]
    return found


def test_groups_are_those_that_the_verdicts_name(tmp_path: Path) -> None:
    """Copies, repeated visits and updates of a crawl, over several commits; every page is in one group."""
    rng = random.Random(5)
    texts = [article(seed, 60) for seed in range(60)]
    pages = [page(rng.randrange(150), rng.choice(texts)) for _ in range(600)]
    verdicts: list[Verdict] = []
    for start in range(0, len(pages), 200):
        with NearDuplicateFilter.open(tmp_path) as dedup:  # closing commits the kept pages
            verdicts += dedup.check_many(pages[start : start + 200])
    assert {verdict.kind for verdict in verdicts} > {VerdictKind.DUPLICATE, VerdictKind.UPDATED, VerdictKind.UNCHANGED}
    found = members(tmp_path)
    assert {member.sequence: group for group, member in found} == told(verdicts)
    by_sequence = {member.sequence: member for _, member in found}
    for verdict, given in zip(verdicts, pages, strict=True):
        member = by_sequence[verdict.sequence]
        assert (member.id, member.url, member.title) == (verdict.id, verdict.url, given.title)
        assert (member.kind, member.distance, member.score, member.reason) == (
            verdict.kind,
            verdict.distance,
            verdict.score,
            verdict.reason,
        )
        assert member.logged_ms is not None
        if member.removed is None:
            assert member.letters == len(PageText("", given.text).letters)


def test_groups_are_read_while_the_state_is_written(tmp_path: Path) -> None:
    """What is durable is seen, whether it is with the kept pages or in the journal."""
    with NearDuplicateFilter.open(tmp_path) as dedup:
        dedup.check_many([page(number, article(number % 5)) for number in range(10)])
        found = groups(tmp_path)
        assert [(group.size, group.members[0].letters is not None) for group in found] == [(2, True)] * 5
    assert groups(tmp_path) == found


def test_a_page_that_was_taken_down_stands_for_nothing(tmp_path: Path) -> None:
    """Its copies stay, and one of them stands for the group; the next copy begins another."""
    with NearDuplicateFilter.open(tmp_path) as dedup:
        dedup.check_many([page(1, article(1)), page(2, article(1)), page(3, article(3))])
        dedup.retract("p1")
        dedup.retract("p3", erase=False)
        dedup.check(page(4, article(1)))
    first, third, new = groups(tmp_path)
    assert [member.removed for member in first.members] == [Removal.RETRACTION, None]
    assert (first.size, first.canonical) == (1, first.members[1])
    assert "p1" not in (first.members[0].id, first.members[0].title)
    assert (third.size, third.canonical, third.members[0].removed) == (0, None, Removal.RETRACTION)
    assert (new.size, new.members[0].id) == (1, "p4")


def test_an_update_begins_a_group(tmp_path: Path) -> None:
    """The earlier text is represented by a page that still has it."""
    with NearDuplicateFilter.open(tmp_path) as dedup:
        dedup.check_many([page(1, article(1)), page(2, article(1)), page(1, article(9)), page(3, article(9))])
    old, new = groups(tmp_path)
    assert [member.removed for member in old.members] == [Removal.UPDATE, None]
    assert old.canonical is not None
    assert old.canonical.id == "p2"
    assert (new.sequence, new.follows, new.size) == (3, 1, 2)


def test_a_corrected_page_stays_in_its_group(tmp_path: Path) -> None:
    """The correction decides from its next visit on, which joins the group that the person named."""
    with NearDuplicateFilter.open(tmp_path) as dedup:
        dedup.check_many([page(1, article(1)), page(2, article(2))])
        dedup.correct(CorrectionRecord("https://a.example/2", "https://a.example/1", True, "the same"))
        dedup.check(page(2, article(2)))
    first, second = groups(tmp_path)
    assert [member.id for member in first.members] == ["p1", "p2"]
    assert [(member.id, member.removed) for member in second.members] == [("p2", Removal.CORRECTION)]


def test_a_page_that_expired_still_stands_for_its_group(tmp_path: Path) -> None:
    """It is there for whoever stored it; later copies begin another group."""
    with NearDuplicateFilter.open(tmp_path, keep=Keep(max_pages=1)) as dedup:
        for at, text in enumerate([1, 1, 2, 1]):
            dedup.check(page(at, article(text)))
    first, _, third = groups(tmp_path)
    assert first.canonical is not None
    assert [member.id for member in first.members] == ["p0", "p1"]
    assert (first.canonical.id, first.canonical.removed) == ("p0", None)
    assert [member.id for member in third.members] == ["p3"]


def test_the_own_text_of_hosts_is_found_if_a_policy_asks(tmp_path: Path) -> None:
    """Its share of the sentences, as the hosts are known at the end of the log."""
    frame = "。".join("此处为网站公共栏目说明文字第" + chr(0x4E00 + at) * 6 + "条内容" for at in range(6))
    with NearDuplicateFilter.open(tmp_path) as dedup:
        dedup.check_many(
            [page(at, f"{frame}。{''.join(chr(0x5000 + 40 * at + i) for i in range(40))}。") for at in range(12)]
        )
    assert {member.host_sentences for _, member in members(tmp_path)} == {None}
    shares = [member.host_sentences for _, member in members(tmp_path, with_sentences=True)]
    assert shares == [pytest.approx(6 / 7)] * 12


def publications(folder: Path) -> list[tuple[str | None, int | None]]:
    """Date and share of main text of the pages, in order."""
    by_sequence = {member.sequence: member for _, member in members(folder)}
    return [(by_sequence[at].date, by_sequence[at].text_percent) for at in sorted(by_sequence)]


def test_date_and_share_of_main_text_are_kept(tmp_path: Path) -> None:
    """Of every page, whether it is kept or a copy: the day alone, and nothing of what is no date."""
    with NearDuplicateFilter.open(tmp_path) as dedup:
        dedup.check(page(1, article(1), date="2024年3月5日", text_percent=62))
        dedup.check_html(f'<meta name="date" content="1969-12-31"><p>{article(1)}</p>', "https://b.example/2")
        dedup.check(page(3, article(1), date="9" * 10**6, text_percent=0))
        dedup.check_many([page(4, article(4)), page(5, article(4), text_percent=10**6)])
    known = [("2024-03-05", 62), ("1969-12-31", 100), (None, 0)]
    assert publications(tmp_path) == [*known, (None, None), (None, None)]


def test_what_was_taken_down_has_no_date(tmp_path: Path) -> None:
    """Nor have its copies, which say the same."""
    with NearDuplicateFilter.open(tmp_path) as dedup:
        dedup.check_many([page(at, article(at // 3), date="2024-03-05", text_percent=62) for at in range(6)])
        dedup.retract("p0")
    assert publications(tmp_path) == [(None, None)] * 3 + [("2024-03-05", 62)] * 3


def test_names_may_have_any_characters(tmp_path: Path) -> None:
    """A lone surrogate, which UTF-8 cannot hold, comes back as it was given."""
    with NearDuplicateFilter.open(tmp_path) as dedup:
        dedup.check(page(1, article(1), id="a\ud800", title="\udfff 题"))
    ((_, member),) = members(tmp_path)
    assert (member.id, member.title) == ("a\ud800", "\udfff 题")


def test_an_empty_state_and_a_folder_without_one(tmp_path: Path) -> None:
    """The one has no groups; the other is refused."""
    with NearDuplicateFilter.open(tmp_path / "state"):
        pass
    assert groups(tmp_path / "state") == []
    with pytest.raises(ConfigurationError):
        groups(tmp_path / "nowhere")
