"""Pages that no crawl should have: crowds, hashes that share their stored bits, evidence and keys that are none."""

import json
import random
from collections import Counter
from dataclasses import replace
from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.log_records import CorrectionRecord, Policy, RetractionRecord
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.splitmix import GAMMA, splitmix64
from dedup_service.core.url import url_hash
from dedup_service.core.verdict import Action
from tests.core.decision.crowded import Run, content, page_of
from tests.oracle.crawl import WrittenLog
from tests.oracle.ways import in_columns, restored

ALIKE = MatchRule(keys=True, verified=(MatchRow(name="alike", jaccard=0.25),))
RULES = [PROFILES["balanced"], PROFILES["simhash"], ALIKE]
LAYOUTS = [IndexLayout(slots=1, window=1), IndexLayout(slots=2, window=3), IndexLayout(slots=8, window=4096)]
_WORD = (1 << 64) - 1

STORED_BITS = 41
"""Bits of a hash that a table of rows stores."""

COLLIDING_URLS = ["http://site1/131384", "http://site1/1b42b9", "http://site1/a6318", "http://site1/3b7e5d"]
"""The first two share the bits of their hashes that a table of rows stores, and so do the other two."""


def mixed(value: int) -> int:
    """Return what the finaliser of SplitMix64 makes of a number."""
    return splitmix64(value - GAMMA)


def unmixed(value: int) -> int:
    """Return the number that `mix64` mixes to `value`."""
    for shift, multiplier in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        back = value
        for _ in range(64 // shift + 1):
            back = value ^ (back >> shift)
        value = back * pow(multiplier, -1, 1 << 64) & _WORD
    return value


def colliding(first: int, number: int) -> int:
    """Return one of the hashes that share the stored bits of a hash."""
    return unmixed(mixed(first) ^ number)


def test_hashes_collide_as_they_should() -> None:
    """The URLs and the hashes of these tests are different, and equal in the bits that are stored."""
    hashes = [url_hash(url) for url in COLLIDING_URLS] + [7, colliding(7, 1), 9, colliding(9, 5)]
    stored = [mixed(value) >> (64 - STORED_BITS) for value in hashes]
    assert len(set(hashes)) == len(hashes)
    assert stored[::2] == stored[1::2]
    assert len(set(stored)) == len(stored) // 2


HASHES = [None, 7, colliding(7, 1), colliding(7, 2), 9, 0, _WORD]
URLS = [*COLLIDING_URLS, "http://site2/a", "http://site2/b", "http://site3/", ""]
EVIDENCE = [b"", *(content(number)[1] for number in (1, 13, 17, 25))]
BROKEN_EVIDENCE = [b"x" * 10, b"\1" * 40, b"\1" * 291, b"\1" * 300, bytes(463)]
KEYS = [b"", b"1234", bytes(256), *(content(number)[2] for number in (1, 13, 17))]
BROKEN_KEYS = [b"\1\0\0\0" * 64, bytes(range(256))]
WORDS = [None, 0, 1, 7, _WORD, 1 << 63, 0xFFFF, 0x5555_5555_5555_5555]


def strange_page(seed: int, *, broken: bool = False) -> PreparedPage:
    """A page whose fields are chosen without regard for each other. broken: also evidence and keys that none has."""
    chosen = random.Random(seed)
    url, claimed = chosen.choice(URLS), chosen.choice([None, None, None, *URLS])
    page = Page(url=url, canonical_url=url, id=url, claimed_url=None if claimed == url else claimed)
    return PreparedPage(
        page,
        Fingerprint(chosen.choice(WORDS), chosen.choice(WORDS)),
        chosen.choice(HASHES),
        chosen.choice(EVIDENCE + BROKEN_EVIDENCE * broken),
        chosen.choice([None, None, "too little text"]),
        chosen.choice(HASHES),
        chosen.choice(KEYS + BROKEN_KEYS * broken),
    )


seeds = st.lists(st.integers(0, 1 << 32), max_size=40)
both = (st.sampled_from(RULES), st.sampled_from(LAYOUTS))


@settings(max_examples=40)
@given(*both, seeds, st.lists(st.integers(0, 12), max_size=12), st.lists(st.integers(0, 99), min_size=1, max_size=6))
def test_strange_pages_get_the_same_verdicts_in_any_batches(
    rule: MatchRule, layout: IndexLayout, some: list[int], cuts: list[int], removed: list[int]
) -> None:
    """One by one, in batches cut anywhere, empty ones among them, and from a restore after each of these."""
    pages = [strange_page(seed, broken=True) for seed in some]
    singly, batched, restored = (Run(rule, layout) for _ in range(3))
    first, removals = 0, cycle(removed)
    for size in [*cuts, len(pages)]:
        part, first = pages[first : first + size], first + size
        decisions = singly.decide(part)
        assert batched.decide(part, batch=True) == decisions
        assert restored.decide(part, batch=size % 2 == 0) == decisions
        for number in [next(removals)] if size < 5 else []:
            for run in (singly, batched, restored):
                run.retract(number)
        assert singly.snapshot() == batched.snapshot() == restored.snapshot()
        restored = Run(rule, layout, restored)


@settings(max_examples=50)
@given(*both, seeds, st.integers(1, 40), st.sets(st.integers(0, 39)))
def test_strange_pages_get_the_verdicts_of_brute_force(
    rule: MatchRule, layout: IndexLayout, some: list[int], size: int, removed: set[int]
) -> None:
    """Hashes that share their stored bits are told apart; pages have no text, no keys, or those of another page."""
    log = log_of(rule, layout)
    for first in range(0, len(some), size):
        log.pages([strange_page(seed) for seed in some[first : first + size]])
        log.drop([sequence for number, sequence in enumerate(log.live()) if number in removed])
    assert in_columns(log.messages) == log.said()


@pytest.mark.parametrize("rule", RULES[:2], ids=["balanced", "simhash"])
def test_crowds_of_one_fingerprint(rule: MatchRule) -> None:
    """Hundreds of pages of other texts with one fingerprint, some of them updated, removed, and copied."""
    log, chosen = log_of(rule, IndexLayout(slots=2, window=50)), random.Random(3)
    pages = [_own_text(number, Fingerprint(5, random_word(number))) for number in range(400)]
    for first in range(0, len(pages), 80):
        visits = [replace(chosen.choice(pages[: first + 1]), body_hash=chosen.getrandbits(64)) for _ in range(5)]
        copies = [_at(chosen.choice(pages[: first + 1]), f"http://copy/{first}/{number}") for number in range(5)]
        log.pages([*pages[first : first + 80], *visits, *copies])
        log.drop(chosen.sample(log.live(), 20))
    assert in_columns(log.messages) == restored(log.messages) == log.said()
    assert Counter(answer.verdict for answer in log.oracle.answers.values())["duplicate"] > 10


def test_crowds_of_one_text() -> None:
    """Hundreds of pages that were updated to one text: a copy is one of the earliest that no correction refuses."""
    log, chosen = log_of(PROFILES["balanced"], IndexLayout(slots=2, window=50)), random.Random(4)
    pages = [_own_text(number, Fingerprint(random_word(number), None)) for number in range(300)]
    crowd = [replace(_at(pages[0], page.page.url), fingerprint=pages[0].fingerprint) for page in pages]
    log.pages(pages)
    log.pages(crowd)
    for number in range(0, 40, 3):
        copy = f"http://copy/{number}"
        for refused in crowd[: 2 * number]:
            log.add([CorrectionRecord(copy, refused.page.canonical_url, duplicate=False, reason="seen")])
        log.pages([_at(pages[0], copy)])
        value = log.oracle.answers[log.records[-1].source].value
        assert value is not None
        assert 2 * number > 64 or json.loads(value)["duplicate_of"] == crowd[2 * number].page.id
    for page in chosen.sample(crowd, 200):
        log.add([RetractionRecord(page.page.canonical_url, "gone")])
    log.pages([_at(pages[0], f"http://late/{number}") for number in range(9)])
    assert in_columns(log.messages) == log.said()


def log_of(rule: MatchRule, layout: IndexLayout) -> WrittenLog:
    """Return an empty log with this policy."""
    return WrittenLog(Policy(rule, Action.FLAG, "space", layout))


def random_word(number: int) -> int:
    """Return a random number."""
    return splitmix64(number + 1_000_003)


def _own_text(number: int, fingerprint: Fingerprint) -> PreparedPage:
    words = random.Random(number)
    text = ["".join(words.choices("abcdefghijklmnop ", k=60)) + ". " for _ in range(6)]
    return replace(page_of(f"http://site{number % 7}/{number}", text), fingerprint=fingerprint)


def _at(page: PreparedPage, url: str) -> PreparedPage:
    """The same text at another address."""
    return replace(page, page=replace(page.page, url=url, canonical_url=url, id=url))
