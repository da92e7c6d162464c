"""The brute-force oracle and the replica give the same verdicts on any log."""

import random
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.decision.replica import Replica
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Combined
from dedup_service.core.log_records import (
    CorrectionRecord,
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    Source,
    TimeRecord,
)
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.rules.profiles import PROFILES, rule_for
from dedup_service.core.rules.rule import DistanceBound, MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.messages.verdict import verdict_value
from tests import made_evidence
from tests.oracle.kept_pages import bit_counts
from tests.oracle.log import OracleAnswer, answers
from tests.page_names import NamesInMemory

SPACE = "space"
RULES = (
    rule_for(),
    rule_for("both"),
    MatchRule(keys=True, verified=PROFILES["broad"].verified),
    replace(PROFILES["precise"], guards=Guards(max_pages=2, max_hosts=1, max_titles=1)),
    MatchRule((DistanceBound(body=3), DistanceBound(words=2, body=9))),
    MatchRule((DistanceBound(words=4),)),
    MatchRule(combined=Combined(900)),
    MatchRule((DistanceBound(body=7),), guards=Guards(max_pages=2, max_hosts=0, max_titles=1)),
    MatchRule((DistanceBound(body=7),), guards=Guards(max_pages=4, max_hosts=1, max_titles=0)),
)


def url_at(site: int, page: int) -> str:
    """A canonical URL."""
    return f"https://site{site}.example/第{page}"


urls = st.builds(url_at, st.integers(0, 2), st.integers(0, 4))
SENTENCES = [
    f"the {number} harbours of the region reported {number * 37} ships in the year {1990 + number}. "
    for number in range(9)
]


TITLES = ["", "ships in the region", "ships in the region, some news", "harbour closed", "harbours closed", "a wall"]


sources = st.builds(Source, st.just("pages"), st.integers(0, 1), st.integers(0, 40))
BOTH = IndexLayout(slots=2, window=3)
LAYOUTS = [BOTH, IndexLayout(slots=1, window=1), IndexLayout(slots=8, window=12)]


@cache
def keys_of(seed: int) -> bytes:
    """Few different keys in each part, so that cells crowd; no keys at all for 0."""
    chosen = random.Random(seed)
    rows = [sorted(chosen.sample(range(1, 12), chosen.randint(1, 8))) for _ in range(8 if seed else 0)]
    return b"".join(key.to_bytes(4, "little") for row in rows for key in (row + [0] * 8)[:8])


@cache
def evidence_of(seed: int) -> bytes:
    """Evidence of some of the sentences under some title, with metadata or without."""
    chosen = random.Random(seed)
    text = "".join(chosen.choices(SENTENCES, k=chosen.randrange(7)))
    return made_evidence.evidence_of(text, chosen.choice(TITLES), chosen.choice([(), ("a",), ("a", "b")]))


def fingerprint(chosen: random.Random) -> int | None:
    """None, or one near all others, or one far from them."""
    near, far = (1 << chosen.randrange(11)) - 1, chosen.getrandbits(64)
    return chosen.choice([None, near, near, far, far])


def page_record(seed: int, *, offsets: int = 40) -> PageRecord:
    """A page near others or far from them, short, without text, with a claim, or of another space."""
    chosen = random.Random(seed)
    url, claimed = url_at(chosen.randrange(3), chosen.randrange(5)), url_at(1, chosen.randrange(3))
    name = chosen.choice(['a\n"b', "第", url])
    page = Page(
        url=f"{url}?utm_source=x",
        canonical_url=url,
        id=name,
        claimed_url=claimed if claimed != url and chosen.random() < 0.25 else None,
    )
    body_hash = chosen.choice([None, 1, 2, 3, 4, 5, *range(100, 120)])
    text_hash = None if body_hash is None else chosen.choice([None, 1, 2, *range(10, 40)])
    evidence = evidence_of(chosen.randrange(60))
    keys = keys_of(chosen.randrange(10)) if Evidence(evidence).shingles else b""
    reason = chosen.choice([None, None, None, "too little text"])
    both = Fingerprint(fingerprint(chosen), fingerprint(chosen))
    prepared = PreparedPage(page, both, body_hash, evidence, reason, text_hash, keys)
    source = Source("pages", chosen.randrange(2), chosen.randrange(offsets))
    return PageRecord(source, prepared, chosen.choice([SPACE] * 9 + ["other"]))


pages = st.builds(page_record, st.integers(0, 1 << 32))
keeps = st.one_of(
    st.just(KEEP_ALL),
    st.builds(Keep, max_pages=st.none() | st.integers(1, 9), max_age_minutes=st.none() | st.integers(1, 12)),
)
policies = st.builds(
    Policy, st.sampled_from(RULES), st.sampled_from(Action), st.just(SPACE), st.sampled_from([BOTH, *LAYOUTS]), keeps
)
records = st.one_of(
    pages,
    pages,
    pages,
    st.builds(RejectedRecord, sources, st.just("no JSON")),
    st.builds(RetractionRecord, urls, st.just("gone")),
    st.builds(TimeRecord, st.integers(1_000, 1_020)),
    st.builds(CorrectionRecord, urls, urls, st.booleans(), st.just("looked at")),
    st.builds(PolicyRecord, policies, st.booleans()),
)


def replica_answers(log: list[tuple[int, LogRecord]]) -> dict[Source, OracleAnswer]:
    """Return the answers of the code under test."""
    replica, found = Replica(NamesInMemory()), {}
    for sequence, record in log:
        outcome = replica.apply(sequence, record)
        if outcome is not None:
            verdict = outcome.verdict
            value = None if verdict is None else verdict_value(verdict, outcome.source)
            kind = "rejected" if verdict is None else verdict.kind.value
            drops = verdict is not None and outcome.action is Action.DROP
            found[outcome.source] = OracleAnswer(outcome.sequence, kind, value, drops)
    return found


@given(policies, st.lists(records, max_size=60))
def test_oracle_and_replica_agree_byte_for_byte(first: Policy, later: list[LogRecord]) -> None:
    """Pages, claims, corrections, retractions, policies, expiry: every verdict is encoded to the same bytes.

    The window is short, and cells crowd, so that most candidates of a rule with keys come from cells.
    """
    log = [(3 * place, record) for place, record in enumerate([PolicyRecord(first, initial=True), *later])]
    assert answers(log) == replica_answers(log)


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("jaccard", "keep"), [(0.3, KEEP_ALL), (0.7, Keep(max_pages=60)), (0.7, Keep(max_age_minutes=20))]
)
def test_oracle_and_replica_agree_on_long_logs(layout: IndexLayout, jaccard: float, keep: Keep) -> None:
    """Hundreds of pages of a few texts, found by keys alone: cells overflow, empty and fill again."""
    rule = MatchRule(keys=True, verified=(MatchRow(name="alike", jaccard=jaccard, containment=0.4),))
    log: list[LogRecord] = [PolicyRecord(Policy(rule, Action.FLAG, SPACE, layout, keep), initial=True)]
    chosen = random.Random(layout.window)
    for number in range(400):
        record = page_record(chosen.getrandbits(32), offsets=10_000)
        url = url_at(chosen.randrange(3), chosen.randrange(1 + number))
        page = replace(record.prepared.page, url=url, canonical_url=url)
        evidence = evidence_of(chosen.randrange(600))
        keys = keys_of(chosen.randrange(40)) if Evidence(evidence).shingles else b""
        made = replace(record.prepared, page=page, evidence=evidence, keys=keys, text_hash=chosen.getrandbits(32))
        log.append(replace(record, prepared=made))
        if number % 7 == 0:
            log.append(TimeRecord(1_000 + number // 9))
        if chosen.random() < 0.3:
            log.append(RetractionRecord(url_at(chosen.randrange(3), chosen.randrange(1 + number)), "gone"))
    numbered = list(enumerate(log))
    found = replica_answers(numbered)
    assert answers(numbered) == found
    kinds = Counter(answer.verdict for answer in found.values())
    assert min(kinds["unique"], kinds["duplicate"], kinds["updated"]) > 20


@pytest.mark.long
@given(st.lists(st.tuples(st.integers(300, 900), st.booleans()), min_size=4, max_size=6), st.integers(0, 60))
@settings(max_examples=5, deadline=None)
def test_oracle_and_replica_agree_on_surges(runs: list[tuple[int, bool]], percent: int) -> None:
    """Runs of copies under other titles and runs of unique pages: recent and usual shares are the same."""
    rule = MatchRule(
        (DistanceBound(body=0),), guards=Guards(max_pages=0, max_hosts=0, max_titles=0, surge_percent=percent)
    )
    log: list[tuple[int, LogRecord]] = [(0, PolicyRecord(Policy(rule, Action.FLAG, SPACE), initial=True))]
    for offset, copied in enumerate(copied for length, copied in runs for _ in range(length)):
        url = f"https://site.example/{offset}"
        body = (offset % 97 if copied else offset) * 0x9E3779B97F4A7C15 % 2**64
        evidence = made_evidence.evidence_of("", f"title {offset}", ("a",))
        page = PreparedPage(Page(url=url, canonical_url=url, id=url), Fingerprint(None, body), offset, evidence)
        log.append((len(log), PageRecord(Source("pages", 0, offset), page, SPACE)))
    assert answers(log) == replica_answers(log)


@pytest.mark.long
def test_oracle_and_replica_agree_on_crowds() -> None:
    """Another text, another host, another address of equal pages: the same copy is the first suspicious one."""
    guards = Guards(max_pages=0, max_hosts=0, max_titles=0, surge_percent=1)
    log: list[tuple[int, LogRecord]] = []

    def add(host: str, body: int, body_hash: int) -> None:
        url = f"https://{host}.example/{len(log)}"
        evidence = made_evidence.evidence_of("", "one title", ("a",))
        fingerprint = Fingerprint(None, body * 0x9E3779B97F4A7C15 % 2**64)
        page = PreparedPage(Page(url=url, canonical_url=url, id=url), fingerprint, body_hash, evidence)
        log.append((len(log), PageRecord(Source("pages", 0, len(log)), page, SPACE)))

    rule = MatchRule((DistanceBound(body=0),), guards=guards)
    log.append((0, PolicyRecord(Policy(rule, Action.FLAG, SPACE), initial=True)))
    for place in range(2000):
        add("site", place, place)
    for copy in range(60):
        add("site", 1, 2000 + copy)
    for copy in range(220):
        add(f"host{copy}", 2, 2)
    for _ in range(1700):
        add("site", 3, 3)
    found = replica_answers(log)
    assert answers(log) == found
    kinds = [found[Source("pages", 0, place)].verdict for place in range(2001, len(log))]
    texts, hosts, addresses = kinds[:60], kinds[60:280], kinds[280:]
    assert [10 < part.index("undecided") < len(part) for part in (texts, hosts, addresses)] == [True] * 3


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_bit_counts_agree_with_python(values: list[int]) -> None:
    """Table look-ups give the number of set bits."""
    assert bit_counts(np.array(values, np.uint64)).tolist() == [value.bit_count() for value in values]
