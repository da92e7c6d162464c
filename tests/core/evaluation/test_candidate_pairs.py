"""The pairs of a crawl that could be labelled."""

from itertools import combinations

from dedup_service.core.evaluation.active_sampling import MAX_COMPARED, MAX_PAIRS, CandidatePairs, margin
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.fingerprinter import Fingerprinter
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from tests.interfaces.cli.edited import edited, story

RULE = PROFILES["balanced"]


def prepared(number: int, sentences: list[str], url: str | None = None) -> PreparedPage:
    """A page of these sentences on a separate host."""
    fingerprinter: Fingerprinter = build_fingerprinter(SpaceOptions())
    address = url or f"https://h{number}.example/{number}"
    return fingerprinter.prepare(Page(url=address, canonical_url=address, id=str(number), text=" ".join(sentences)))


def collected(pages: list[PreparedPage]) -> CandidatePairs:
    """The pairs of these pages, in their order."""
    found = CandidatePairs(RULE)
    for page in pages:
        found.add(page)
    return found


def test_edited_copies_are_found_with_their_margins() -> None:
    """There are pairs of one story on both sides of the rule, and no pairs of different stories."""
    pages = [prepared(at, edited(at % 8, 2 * max(0, at - 8))) for at in range(16)]
    found = collected(pages).pairs
    assert {(pair.a, pair.b) for pair in found} <= {(at, at + 8) for at in range(8)}
    assert {pair.margin >= 0 for pair in found} == {True, False}
    for pair in found:
        similarity = Similarity(Evidence(pages[pair.a].evidence), Evidence(pages[pair.b].evidence))
        assert pair.margin == margin(RULE, similarity)
        assert pair.hosts == tuple(sorted((f"h{pair.a}.example", f"h{pair.b}.example")))


def test_groups_have_the_pages_that_the_rule_joins() -> None:
    """A group also has pages that are joined through a third one."""
    pages = [prepared(0, story(3)), prepared(1, edited(3, 1)), prepared(2, edited(3, 2)), prepared(3, story(4))]
    groups = collected(pages).groups
    assert [groups.group_of(at) for at in range(4)] == [0, 0, 0, 3]


def test_equal_bodies_and_visits_of_one_url_are_not_paired() -> None:
    """Places count all pages, these included."""
    pages = [
        prepared(0, story(1)),
        prepared(1, story(1)),
        prepared(2, edited(1, 3), url="https://h0.example/0"),
        prepared(3, edited(1, 4)),
    ]
    assert {(pair.a, pair.b) for pair in collected(pages).pairs} == {(0, 3), (2, 3)}


def test_a_page_is_in_a_bounded_number_of_pairs_with_earlier_ones() -> None:
    """The bound holds for any number of copies of one story."""
    pages = [prepared(at, [*story(1), f"Edition number {at * 7919}."]) for at in range(MAX_COMPARED + 20)]
    found = collected(pages).pairs
    assert len(found) > len(pages)
    assert all(sum(pair.b == at for pair in found) <= 2 * MAX_PAIRS for at in range(len(pages)))


def test_a_page_without_text_is_not_paired() -> None:
    """It has a place all the same."""
    pages = [prepared(0, []), prepared(1, story(1)), prepared(2, edited(1, 2))]
    assert [(pair.a, pair.b) for pair in collected(pages).pairs] == [(1, 2)]


def test_pairs_do_not_repeat() -> None:
    """Each pair of pages is found once."""
    found = [(pair.a, pair.b) for pair in collected([prepared(at, edited(1, at)) for at in range(9)]).pairs]
    assert len(found) == len(set(found))
    assert set(found) <= set(combinations(range(9), 2))
