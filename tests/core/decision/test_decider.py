"""Decisions, compared with brute force."""

import random
import string
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import Entry, score_of
from dedup_service.core.decision.decider import Decider, Decision
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.evidence.similarity import Combined
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import DistanceBound, MatchRule
from dedup_service.core.verdict import Distance, Verdict, VerdictKind
from dedup_service.runtime.resources import build_fingerprinter
from tests.core.decision.crowded import page_of
from tests.made_evidence import evidence_of

RULE = MatchRule((DistanceBound(body=4), DistanceBound(words=2, body=9)))


class Log:
    """A decider with the pages that it has seen, as a runtime has them."""

    def __init__(
        self,
        rule: MatchRule = RULE,
        restored: Iterable[Sequence[Entry]] = (),
        overrides: Overrides | None = None,
    ) -> None:
        self.pages: dict[int, PreparedPage] = {}
        self.decisions: list[Decision] = []
        self.decider = Decider(rule, "space", self, restored=restored, overrides=overrides)
        self._sequence = count(1)

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the page at `sequence`."""
        page = self.pages[sequence].page
        return page.id, page.url

    def add(self, prepared: PreparedPage) -> Verdict:
        """Decide the next page."""
        sequence = next(self._sequence)
        self.pages[sequence] = prepared
        self.decisions.append(self.decider.decide(sequence, prepared))
        return self.decisions[-1].verdict


def prepared(
    url: str,
    words: int | None = 0,
    body: int | None = 0,
    *,
    text: int | None = None,
    reason: str | None = None,
    meta: tuple[str, ...] = (),
) -> PreparedPage:
    """A page at `url` with these fingerprints; `text` is the hash of its body."""
    page = Page(url=url, canonical_url=url, id=url)
    evidence = evidence_of("", metadata=meta)
    return PreparedPage(page, Fingerprint(words, body), hash(url) % 2**64 if text is None else text, evidence, reason)


def claiming(page: PreparedPage, claimed: str) -> PreparedPage:
    """The same page, which names `claimed` as canonical."""
    return replace(page, page=replace(page.page, claimed_url=claimed))


def sentences(count: int) -> list[str]:
    """Sentences without anything in common but letters."""
    rng = random.Random(5)
    return ["".join(rng.choices(string.ascii_lowercase + " " * 6, k=60)) + "。" for _ in range(count)]


HARBOUR = sentences(12)


def test_a_page_that_contains_another_is_kept_with_a_reason() -> None:
    """If it is more than half as long again it is another article, as is a part of a longer page."""
    log = Log(rule_for())
    log.add(page_of("short", HARBOUR[:6]))
    longer = log.add(page_of("longer", HARBOUR))
    assert (longer.kind, longer.reason, longer.duplicate_of) == (VerdictKind.UNIQUE, "contains short", None)
    part = log.add(page_of("part", HARBOUR[7:]))
    assert (part.kind, part.reason) == (VerdictKind.UNIQUE, "is contained in longer")
    copy = log.add(page_of("copy", HARBOUR[:11]))
    assert (copy.kind, copy.duplicate_of) == (VerdictKind.DUPLICATE, "longer")


def flip(value: int, bits: int) -> int:
    """`value` with its lowest `bits` bits flipped."""
    return value ^ ((1 << bits) - 1)


def test_the_nearest_match_is_named_and_the_earlier_of_equals() -> None:
    """Of several matches the one with the highest score is named; of equals, the earlier page."""
    log = Log(MatchRule((DistanceBound(body=7),)))
    log.add(prepared("far", body=0))
    log.add(prepared("near", body=0b11111111))
    verdict = log.add(prepared("copy", body=0b111111))
    assert (verdict.duplicate_of, verdict.distance) == ("near", Distance(words=0, body=2))
    assert verdict.score == score_of(verdict.distance.words, verdict.distance.body)
    assert verdict.reason == "body ≤ 7"
    tie = Log(MatchRule((DistanceBound(body=7),)))
    tie.add(prepared("left", body=0))
    tie.add(prepared("right", body=0xFF))
    assert tie.add(prepared("between", body=0xF)).duplicate_of == "left"


def test_a_duplicate_is_never_compared_with() -> None:
    """Only kept pages are compared, so a chain of small edits does not drift: the third page is kept."""
    log = Log(MatchRule((DistanceBound(body=4),)))
    verdicts = [log.add(prepared(f"u{n}", body=flip(0, n))).kind.value for n in (0, 4, 8)]
    assert verdicts == ["unique", "duplicate", "unique"]


def test_a_page_that_names_another_does_not_replace_it() -> None:
    """Its text is another one, so it is a page of its own; copies of the named page are still duplicates."""
    log = Log()
    log.add(prepared("/other/1", words=0, body=0))
    thief = log.add(claiming(prepared("/x", words=flip(0, 40), body=flip(0, 40)), "/other/1"))
    assert (thief.kind, thief.duplicate_of, thief.claim_refused) == (VerdictKind.UNIQUE, None, True)
    copy = log.add(prepared("/copy"))
    assert (copy.kind, copy.duplicate_of) == (VerdictKind.DUPLICATE, "/other/1")
    assert log.add(prepared("/copy of x", words=flip(0, 40), body=flip(0, 40))).duplicate_of == "/x"


@pytest.mark.parametrize("section_first", [True, False])
def test_articles_that_name_their_section_all_stay(section_first: bool) -> None:
    """A site's template names the section page as canonical on every article."""
    log = Log()
    rng = random.Random(3)
    section = prepared("/section", rng.getrandbits(64), rng.getrandbits(64))
    articles = [claiming(prepared(f"/a/{n}", rng.getrandbits(64), rng.getrandbits(64)), "/section") for n in range(5)]
    verdicts = [log.add(page) for page in ([section, *articles] if section_first else [*articles, section])]
    assert [verdict.kind for verdict in verdicts] == [VerdictKind.UNIQUE] * 6
    assert [log.decider.sequence_of(page.page.url) for page in [section, *articles]].count(None) == 0
    assert sum(verdict.claim_refused for verdict in verdicts) == (5 if section_first else 0)


def test_a_print_view_is_a_visit_of_the_article_that_it_names() -> None:
    """With the same text it is `unchanged`, at every visit; nothing is added to the index."""
    log = Log()
    log.add(prepared("/a", text=1))
    for _ in range(2):
        view = log.add(claiming(prepared("/a/print", text=1), "/a"))
        assert (view.kind, view.duplicate_of, view.by_claim) == (VerdictKind.UNCHANGED, "/a", True)
    assert len(log.decider) == 1


def test_an_edit_that_is_seen_first_through_a_claim_is_an_update() -> None:
    """The article's entry changes at the next visit of its own address; then the print view is unchanged again."""
    log = Log()
    edited = {"body": 1, "text": 2}
    log.add(prepared("/a", text=1))
    assert log.add(claiming(prepared("/a/print", **edited), "/a")).kind is VerdictKind.UPDATED
    assert not log.decisions[-1].kept
    assert log.add(prepared("/a", **edited)).kind is VerdictKind.UPDATED
    assert log.add(claiming(prepared("/a/print", **edited), "/a")).kind is VerdictKind.UNCHANGED
    assert log.add(prepared("/a", **edited)).kind is VerdictKind.UNCHANGED
    assert len(log.decider) == 1


def test_an_article_that_comes_after_its_print_view_is_a_copy_of_it() -> None:
    """Nobody owns an address that was never kept, so two pages that claim it are compared like any two."""
    log = Log()
    assert log.add(claiming(prepared("/a/print", text=1), "/a")).kind is VerdictKind.UNIQUE
    assert log.add(claiming(prepared("/a/amp", text=1), "/a")).duplicate_of == "/a/print"
    article = log.add(prepared("/a", text=1))
    assert (article.kind, article.duplicate_of) == (VerdictKind.DUPLICATE, "/a/print")
    assert log.add(claiming(prepared("/a/print", text=1), "/a")).kind is VerdictKind.UNCHANGED


def test_a_page_that_was_kept_under_its_own_address_stays_there() -> None:
    """Its own address comes before the one that it claims, even if the claimed page now has its text."""
    log = Log()
    far = {"words": flip(0, 40), "body": flip(0, 40)}
    log.add(prepared("/a", text=1))
    assert log.add(claiming(prepared("/b", **far, text=2), "/a")).kind is VerdictKind.UNIQUE
    verdict = log.add(claiming(prepared("/b", text=1), "/a"))
    assert (verdict.kind, verdict.duplicate_of, verdict.by_claim) == (VerdictKind.UPDATED, "/b", False)


def test_a_refused_claim_is_in_the_reason_of_every_verdict() -> None:
    """A page whose claim is refused may still be a copy of a third page, or too short to judge."""
    log = Log()
    far = {"words": flip(0, 40), "body": flip(0, 40)}
    log.add(prepared("/a"))
    log.add(prepared("/third", **far))
    copy = log.add(claiming(prepared("/b", **far), "/a"))
    assert (copy.kind, copy.duplicate_of, copy.claim_refused) == (VerdictKind.DUPLICATE, "/third", True)
    assert copy.reason is not None
    assert copy.reason.startswith("body ≤ 4; ")
    short = log.add(claiming(prepared("/c", words=None, body=None, reason="too little text"), "/a"))
    assert (short.kind, short.claim_refused, short.guard) == (VerdictKind.UNDECIDED, True, None)


def test_a_page_without_text_claims_nothing() -> None:
    """A failed extraction at another address is `undecided`, as at its own."""
    log = Log()
    log.add(prepared("/a", text=1))
    empty = PreparedPage(Page(url="/p", canonical_url="/p", claimed_url="/a", id="/p"), Fingerprint(), None)
    assert (log.add(empty).kind, len(log.decider)) == (VerdictKind.UNDECIDED, 1)


def test_a_persons_correction_comes_before_a_claim() -> None:
    """Two pages that a person told apart stay two; one that repeats a third page repeats it."""
    distinct, same = CorrectionRecord("/p", "/a", False, "no"), CorrectionRecord("/p", "/b", True, "yes")
    for correction, expected in ((distinct, (VerdictKind.UNIQUE, None)), (same, (VerdictKind.DUPLICATE, "/b"))):
        log = Log(overrides=Overrides([correction]))
        log.add(prepared("/a", text=1))
        log.add(prepared("/b", words=flip(0, 40), body=flip(0, 40)))
        verdict = log.add(claiming(prepared("/p", text=1), "/a"))
        assert (verdict.kind, verdict.duplicate_of, verdict.claim_refused) == (*expected, False)


addresses = st.integers(0, 4)


@given(st.lists(st.tuples(addresses, st.none() | addresses, st.sampled_from([0, 1, 2, 20, 21, 40])), max_size=30))
def test_an_entry_changes_only_at_a_visit_of_its_own_address(visits: list[tuple[int, int | None, int]]) -> None:
    """Whatever pages claim, the entry of an address is that of the last page kept at this very address."""
    log = Log()
    for own, claimed, bits in visits:
        page = prepared(f"/{own}", flip(0, bits), flip(0, bits), text=bits)
        before = {name: log.decider.sequence_of(f"/{name}") for name in range(5)}
        verdict = log.add(page if claimed in {None, own} else claiming(page, f"/{claimed}"))
        after = {name: log.decider.sequence_of(f"/{name}") for name in range(5)}
        assert {name for name in after if after[name] != before[name]} <= {own}
        assert (before[own] is None) or (after[own] is not None)
        assert not (verdict.by_claim and verdict.claim_refused)


SHORT = (
    "新港大桥今天上午通车，首日有许多车辆驶过，沿线村庄的居民步行过桥，"
    "渡船同时停航，码头改为公园，向公众开放，市长剪彩。"
)


ENOUGH = f"{SHORT}本报记者摄影报道现场图片见第二版"


def article(name: str, text: str, title: str = "") -> PreparedPage:
    """A page as the default fingerprinter prepares it: with its own fingerprints, hashes, keys and evidence."""
    url = f"https://a.example/{name}"
    return build_fingerprinter().prepare(Page(url=url, canonical_url=url, id=name, title=title, text=text))


@pytest.mark.parametrize("rule", [rule_for(), MatchRule((DistanceBound(words=3),))], ids=["evidence", "distance"])
def test_short_text_matches_nobody(rule: MatchRule) -> None:
    """A short page is kept with its reason and never becomes an original, however alike another page is."""
    log = Log(rule)
    first = log.add(article("short", SHORT))
    assert first.kind is VerdictKind.UNDECIDED
    assert "too little text" in (first.reason or "")
    for number, text in enumerate([f"{SHORT}完", f"{SHORT}！完了", SHORT.replace("许多", "不少")]):
        verdict = log.add(article(f"edited {number}", text))
        assert (verdict.kind, verdict.duplicate_of) == (VerdictKind.UNDECIDED, None), text
    judged = log.add(article("judged", ENOUGH))
    assert (judged.kind, judged.duplicate_of) == (VerdictKind.UNIQUE, None)


def test_a_longer_text_matches_with_the_same_additions() -> None:
    """What keeps a short text from matching is its length alone: from 160 letters they are copies."""
    log, text = Log(rule_for()), ENOUGH + ENOUGH[::-1] + SHORT[::2] + SHORT[1::2]
    log.add(article("judged", text))
    for number, other in enumerate([f"{text}完", f"{text}！完了", text.replace("许多", "不少")]):
        verdict = log.add(article(f"copy {number}", other))
        assert (verdict.kind, verdict.duplicate_of) == (VerdictKind.DUPLICATE, "judged"), other


def test_combined_similarity_lets_shared_keywords_reach_further() -> None:
    """At word distance 5 equal keywords make a match; other keywords, or none, do not."""
    for meta, kind in ((("a", "b"), "duplicate"), (("c",), "unique"), ((), "unique")):
        log = Log(MatchRule(combined=Combined()))
        log.add(prepared("original", words=0, meta=("a", "b")))
        assert log.add(prepared("copy", words=flip(0, 5), meta=meta)).kind.value == kind


def test_an_absent_channel_never_satisfies_its_bound() -> None:
    """Pages without word features never match by words."""
    log = Log(MatchRule((DistanceBound(words=3),)))
    log.add(prepared("a", words=None))
    assert log.add(prepared("b", words=None)).kind is VerdictKind.UNIQUE


def test_the_score_is_the_estimated_cosine() -> None:
    """Equal fingerprints score 1, unrelated ones 0; without fingerprints there is no score."""
    assert score_of(0, 0) == 1.0
    assert score_of(32, 40) == 0.0
    assert score_of(None, None) is None
