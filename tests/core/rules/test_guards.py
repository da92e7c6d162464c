"""Guards stop a crawl from collapsing into one page, and accept the copies that a crawl normally has."""

import random
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import chain, count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.decider import Decider, Decision
from dedup_service.core.decision.guard_state import Copy
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.guards import NO_GUARDS, Guards
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.verdict import Guard, Verdict, VerdictKind, guard_in
from tests.made_evidence import evidence_of

RULE = PROFILES["balanced"]
DEFAULT = Guards()


def sentences(seed: str, number: int) -> list[str]:
    """Sentences that no other seed has."""
    rng = random.Random(seed)
    return ["".join(rng.choices(string.ascii_lowercase + " " * 6, k=60)) + ". " for _ in range(number)]


def headline(seed: str) -> str:
    """A title of six words that no other seed has."""
    return " ".join("".join(random.Random(f"{seed} {word}").choices(string.ascii_lowercase, k=6)) for word in range(6))


def page(url: str, title: str, story: str, text_hash: int = 1) -> PreparedPage:
    """A page of twelve sentences; pages of one story are alike, and equal if their `text_hash` is."""
    fingerprint = random.Random(story).getrandbits(64)
    prints = Fingerprint(fingerprint, fingerprint)
    body_hash = fingerprint ^ text_hash
    return PreparedPage(Page(url=url, canonical_url=url, id=url), prints, body_hash, evidence(title, story))


@cache
def evidence(title: str, story: str) -> bytes:
    """The evidence of a story under a title."""
    return evidence_of("".join(sentences(story, 12)), title)


class Crawl:
    """A decider and its decisions."""

    def __init__(self, guards: Guards = DEFAULT, overrides: Overrides | None = None) -> None:
        self.decider = Decider(replace(RULE, guards=guards), "space", self, overrides=overrides)
        self.decisions: list[Decision] = []
        self._names: dict[int, tuple[str, str]] = {}
        self._sequence = count(1)

    def name(self, sequence: int) -> tuple[str, str]:
        """Id and URL of the page at `sequence`."""
        return self._names[sequence]

    def decide(self, pages: Iterable[PreparedPage]) -> list[Verdict]:
        """Return the verdicts on pages in their order."""
        first = len(self.decisions)
        numbered = [(sequence, page) for page, sequence in zip(pages, self._sequence, strict=False)]
        self._names |= {sequence: (prepared.page.id, prepared.page.url) for sequence, prepared in numbered}
        self.decisions += self.decider.decide_all(numbered)
        return [decision.verdict for decision in self.decisions[first:]]


def ordinary(number: int, name: str = "ordinary") -> Iterator[PreparedPage]:
    """Different pages; every sixth is copied to another host under its title."""
    for at in range(number):
        yield page(f"http://news.example/{name}/{at}", headline(f"{name} {at}"), f"{name} {at}")
        if at % 6 == 0:
            yield page(f"http://copy.example/{name}/{at}", headline(f"{name} {at}") + " copy", f"{name} {at}")


def guards_of(verdicts: Iterable[Verdict]) -> Counter[str]:
    """How many verdicts each guard decided."""
    return Counter(verdict.guard.value for verdict in verdicts if verdict.guard is not None)


def test_one_body_under_many_titles_is_not_accepted() -> None:
    """If extraction returns one frame for all articles of a site, a hundred are lost, not thousands."""
    pages = (page(f"http://site.example/{at}", headline(f"article {at}"), "frame") for at in range(2000))
    crawl = Crawl()
    verdicts = crawl.decide(pages)
    kinds = Counter(verdict.kind for verdict in verdicts)
    assert kinds[VerdictKind.UNIQUE] == 1
    assert 60 <= kinds[VerdictKind.DUPLICATE] <= 160
    assert guards_of(verdicts) == {"titles": kinds[VerdictKind.UNDECIDED]}
    assert verdicts[-1].reason is not None
    assert verdicts[-1].reason.startswith("guard titles: pages under about ")
    assert "other titles match http://site.example/0, more than 100" in verdicts[-1].reason
    assert all(not decision.kept for decision in crawl.decisions if decision.verdict.guard)


def test_one_page_on_many_hosts_is_not_accepted() -> None:
    """A consent wall that has the same title everywhere."""
    pages = (page(f"http://site{at}.example/a", "before you go on", "wall") for at in range(3000))
    verdicts = Crawl().decide(pages)
    assert guards_of(verdicts)["hosts"] >= 2200
    assert sum(verdict.kind is VerdictKind.DUPLICATE for verdict in verdicts) >= 300


def test_articles_under_an_untitled_frame_are_not_accepted() -> None:
    """That the kept page has no title does not make its copies' titles the same."""
    pages = (page(f"http://site.example/{at}", headline(f"article {at}"), "frame") for at in range(400))
    verdicts = Crawl().decide([page("http://site.example/", "", "frame"), *pages])
    assert guards_of(verdicts)["titles"] >= 240


def test_one_page_at_too_many_urls_is_not_accepted() -> None:
    """An error page on one host, under one title, is recognised only by the number of its URLs."""
    pages = (page(f"http://site.example/{at}", "an error", "error") for at in range(3000))
    verdicts = Crawl(Guards(max_pages=1000, surge_percent=0)).decide(pages)
    assert guards_of(verdicts).keys() == {"pages"}
    assert guards_of(verdicts)["pages"] >= 1500


def test_a_surge_is_not_accepted_until_the_share_returns() -> None:
    """Each of many small sites returns its frame: suddenly all pages are suspicious copies."""
    crawl = Crawl()
    assert not guards_of(crawl.decide(ordinary(2400)))
    broken = [page(f"http://s{at % 40}.example/{at}", headline(f"b {at}"), f"frame {at % 40}") for at in range(1500)]
    verdicts = crawl.decide(broken)
    assert guards_of(verdicts).keys() == {"surge"}
    assert 1000 <= guards_of(verdicts)["surge"] <= 1100
    assert verdicts[-1].reason == (
        "guard surge: 100% of the last 1000 pages are suspicious copies, usually 3%; this one of http://s19.example/19"
    )
    again = crawl.decide(ordinary(1000, "later"))
    assert not guards_of(again), "copies under their titles are accepted all the time"
    assert not guards_of(crawl.decide([page("http://s1.example/x", headline("x"), "frame 1")]))


def test_an_operator_ends_a_surge() -> None:
    """Raised bounds apply from the next page on; what was counted stays counted."""
    crawl = Crawl(Guards(max_titles=0))
    crawl.decide(ordinary(2000))
    broken = [page(f"http://s{at}.example/", headline(f"b {at}"), f"frame {at % 20}") for at in range(900)]
    assert guards_of(crawl.decide(broken[:600])).keys() == {"surge"}
    crawl.decider.set_guards(Guards(max_titles=0, surge_percent=100))
    assert not guards_of(crawl.decide(broken[600:800]))
    crawl.decider.set_guards(Guards(max_titles=15))
    assert guards_of(crawl.decide(broken[800:])) == {"titles": 100}
    crawl.decider.set_guards(NO_GUARDS)
    assert crawl.decider.state().guards is None


def learned_crawl() -> Crawl:
    """A crawl that is long enough to know its usual share of suspicious copies."""
    crawl = Crawl()
    assert not guards_of(crawl.decide(ordinary(1750)))
    return crawl


def in_turns(clusters: list[list[PreparedPage]]) -> list[PreparedPage]:
    """The first page of each cluster, then the second of each."""
    return list(chain.from_iterable(zip(*clusters, strict=True)))


def facets(pages: int, addresses: int, title: str | None = None) -> list[list[PreparedPage]]:
    """For each of some pages: it at many addresses of one host, under its title or this one."""
    return [
        [
            page(f"http://shop.example/{at}?sort={order}", headline(f"p {at}") if title is None else title, f"p {at}")
            for order in range(addresses)
        ]
        for at in range(pages)
    ]


def mirrors(pages: int, hosts: int) -> list[list[PreparedPage]]:
    """For each of some pages: it under its title on many hosts."""
    return [
        [page(f"http://mirror{host}.example/{at}", headline(f"m {at}"), f"m {at}") for host in range(hosts)]
        for at in range(pages)
    ]


def one_by_one(clusters: list[list[PreparedPage]]) -> list[PreparedPage]:
    """All pages of a cluster, then those of the next."""
    return list(chain.from_iterable(clusters))


@pytest.mark.parametrize("order", [in_turns, one_by_one])
@pytest.mark.parametrize(
    "made",
    [
        pytest.param(partial(facets, 15, 100), id="facets"),
        pytest.param(partial(facets, 15, 100, ""), id="facets without titles"),
        pytest.param(partial(facets, 2, 1000), id="a thousand addresses"),
        pytest.param(partial(mirrors, 150, 20), id="mirrors"),
        pytest.param(partial(mirrors, 20, 100), id="a hundred hosts"),
    ],
)
def test_equal_pages_at_many_addresses_are_accepted(
    made: Callable[[], list[list[PreparedPage]]], order: Callable[[list[list[PreparedPage]]], list[PreparedPage]]
) -> None:
    """Facets and mirrors, one page after the other or all in turns."""
    clusters = made()
    kinds = Counter(verdict.kind for verdict in learned_crawl().decide(order(clusters)))
    assert kinds == {VerdictKind.UNIQUE: len(clusters), VerdictKind.DUPLICATE: len(clusters) * (len(clusters[0]) - 1)}


@pytest.mark.parametrize("title", ["", "print view", "print: {}"])
def test_print_views_are_accepted(title: str) -> None:
    """Each article once more on its host, under its title with an addition, under a common one or without any."""
    views = (
        page(f"http://news.example/print/{at}", title.format(headline(f"ordinary {at}")), f"ordinary {at}")
        for at in range(1500)
    )
    assert {verdict.kind for verdict in learned_crawl().decide(views)} == {VerdictKind.DUPLICATE}


def test_an_error_page_is_a_facet_up_to_its_bound() -> None:
    """The same title and text on one host: beyond a thousand addresses it surges."""
    verdicts = learned_crawl().decide(page(f"http://site.example/{at}", "an error", "error") for at in range(3000))
    assert guards_of(verdicts).keys() == {"surge"}
    assert 1000 <= sum(verdict.kind is VerdictKind.DUPLICATE for verdict in verdicts) <= 2000


def test_a_template_under_one_title_is_not_accepted() -> None:
    """Texts that are alike but never equal, under the title of the site: sixteen are enough."""
    verdicts = learned_crawl().decide(
        page(f"http://site.example/{at}", "the site", "template", at) for at in range(2000)
    )
    assert guards_of(verdicts).keys() == {"surge"}
    assert sum(verdict.kind is VerdictKind.DUPLICATE for verdict in verdicts) <= 450


def test_a_copy_that_changes_often_is_accepted() -> None:
    """Ten addresses, each with a slightly different text at every visit."""
    visits = (page(f"http://h{at % 10}.example/", "same title", "story", at) for at in range(2000))
    kept = page("http://site.example/", "same title", "story", 2000)
    assert not guards_of(learned_crawl().decide([kept, *visits]))


def test_a_wire_story_is_accepted() -> None:
    """Three hundred hosts, each with its name after the title, some with another headline."""

    def pages() -> Iterator[PreparedPage]:
        for at in range(300):
            title = headline("wire") + f" {headline(f'host {at}')[:6]}"
            yield page(f"http://paper{at}.example/wire", headline(f"own {at}") if at % 6 == 1 else title, "wire")

    assert not guards_of(Crawl().decide(pages()))


def test_a_mirror_and_a_second_crawl_are_accepted() -> None:
    """All pages are copies, each of a different page and under its title; or all are visited again."""
    crawl = Crawl()
    crawl.decide(ordinary(2500))
    mirror = [page(f"http://mirror.example/{at}", headline(f"ordinary {at}"), f"ordinary {at}") for at in range(2500)]
    assert {verdict.kind for verdict in crawl.decide(mirror)} == {VerdictKind.DUPLICATE}
    assert not guards_of(crawl.decide(ordinary(2500)))


def test_visits_to_the_same_copies_do_not_add_up() -> None:
    """The size of a cluster is the number of its URLs, however often they are visited."""
    crawl = Crawl(Guards(max_pages=30, max_hosts=30, max_titles=0))
    for _ in range(100):
        assert not guards_of(crawl.decide(page(f"http://h{at}.example/", "same title", "story") for at in range(10)))


def test_a_cluster_ends_with_its_page() -> None:
    """After a retraction or an update of the kept page, the next one begins a new cluster."""
    guards = Guards(max_titles=2, max_hosts=0, max_pages=0)
    crawl = Crawl(guards)
    pages = [page(f"http://site{at}.example/", headline(f"t {at}"), "frame") for at in range(12)]
    assert guards_of(crawl.decide(pages[:6])) == {"titles": 3}
    crawl.decider.retract(1)
    assert [verdict.kind for verdict in crawl.decide(pages[6:9])] == ["unique", "duplicate", "duplicate"]
    update = replace(page("http://site6.example/", headline("t 6"), "frame"), body_hash=2)
    assert [verdict.kind for verdict in crawl.decide([update, *pages[9:11]])] == ["updated", "duplicate", "duplicate"]


def test_a_correction_overrides_guards() -> None:
    """A corrected page is a duplicate even of a page whose cluster is too large, and is not counted."""
    overrides = Overrides([CorrectionRecord("http://a.example/", "http://site.example/0", True, "looked at")])
    crawl = Crawl(Guards(max_titles=1), overrides)
    crawl.decide(page(f"http://site.example/{at}", headline(f"t {at}"), "frame") for at in range(5))
    corrected = crawl.decide([page("http://a.example/", headline("a"), "frame")])[0]
    assert (corrected.kind, corrected.reason) == (VerdictKind.DUPLICATE, "a person called it a duplicate")
    assert crawl.decisions[-1].copy is None


def test_without_guards_every_match_is_accepted() -> None:
    """A log that is older than guards has none."""
    crawl = Crawl(NO_GUARDS)
    verdicts = crawl.decide(page(f"http://s{at}.example/", headline(f"t {at}"), "frame") for at in range(1000))
    assert Counter(verdict.kind for verdict in verdicts) == {"unique": 1, "duplicate": 999}


@pytest.mark.parametrize("cut", [0, 1, 700, 2600])
def test_guards_continue_from_their_state(cut: int) -> None:
    """The stored copies lead from any state to the same state."""
    crawl = Crawl()
    broken = [page(f"http://s{at}.example/", headline(f"t {at}"), f"frame {at % 9}") for at in range(700)]
    pages = [*ordinary(2000), *broken]
    crawl.decide(pages)
    effects = [(made.kept, made.replaces, made.copy) for made in crawl.decisions]
    numbered = list(enumerate(pages, 1))
    first = Decider(crawl.decider.rule, "space", crawl)
    first.replay(numbered[:cut], effects[:cut])
    second = Decider(crawl.decider.rule, "space", crawl, restored=first.held(), state=first.state())
    second.replay(numbered[cut:], effects[cut:])
    assert second.state().guards == crawl.decider.state().guards != first.state().guards


@given(st.builds(Copy, st.integers(-(2**63), 2**63 - 1), *[st.integers(0, 2**32 - 1)] * 4))
def test_a_copy_survives_the_journal(copy: Copy) -> None:
    """`unpack` returns what `pack` packed."""
    assert Copy.unpack(copy.pack()) == copy


@pytest.mark.parametrize(
    ("kept", "copy", "same"),
    [
        ("one two three four", "one two three four five six seven", True),
        ("one two three", "one two three", True),
        ("one two three", "one two nine", False),
        ("one two", "", True),
        ("", "", True),
        ("", "one", False),
    ],
)
def test_titles_with_a_few_added_words_are_the_same(kept: str, copy: str, same: bool) -> None:
    """A host name at the end makes no difference. A copy without a title has no other title."""
    crawl = Crawl()
    crawl.decide([page("http://a.example/", kept, "story"), page("http://b.example/", copy, "story")])
    counted = crawl.decisions[1].copy
    assert counted is not None
    assert (counted.title == 0) == same


def test_only_undecided_pages_name_a_guard() -> None:
    """Only existing guards count: other reasons may begin with the word."""
    verdict = Verdict(sequence=1, id="", url="", kind=VerdictKind.UNDECIDED, space="", reason="guard hosts: many")
    assert verdict.guard is Guard.HOSTS
    assert replace(verdict, kind=VerdictKind.UNIQUE).guard is None
    assert guard_in("guard of honour: none") is None
    assert guard_in("too little text") is None
    assert guard_in(None) is None


@pytest.mark.parametrize("values", [{"max_pages": -1}, {"max_hosts": 1.5}, {"max_titles": True}, {"most": 1}])
def test_invalid_bounds_are_refused(values: dict[str, object]) -> None:
    """The message names the bound."""
    with pytest.raises(ConfigurationError, match=next(iter(values))):
        Guards.from_dict(values)


def test_guards_as_text() -> None:
    """The text is the one that `policy show` prints."""
    assert str(Guards()) == "10000 pages, 500 hosts, 100 titles, 40 % surge"
    assert (str(NO_GUARDS), bool(NO_GUARDS)) == ("none", False)
