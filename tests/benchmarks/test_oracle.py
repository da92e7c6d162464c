"""The brute-force oracle and the replica give the same verdicts on any log."""

import random
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.service.kept_pages import bit_counts
from benchmarks.service.oracle import OracleAnswer, answers
from dedup_service.core.decision.replica import Replica
from dedup_service.core.evidence.packed import Evidence, pack_evidence
from dedup_service.core.evidence.similarity import Combined, pack
from dedup_service.core.log_records import (
    CorrectionRecord,
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    Source,
)
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import PROFILES, rule_for
from dedup_service.core.rules.rule import DistanceBound, MatchRule
from dedup_service.core.text.normalise import letters
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.messages.verdict import verdict_value
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

urls = st.tuples(st.integers(0, 2), st.integers(0, 4)).map(lambda at: f"https://site{at[0]}.example/第{at[1]}")
fingerprints = st.one_of(st.none(), st.integers(0, 10).map(lambda bits: (1 << bits) - 1), st.integers(0, 2**64 - 1))
SENTENCES = [
    f"the {number} harbours of the region reported {number * 37} ships in the year {1990 + number}. "
    for number in range(9)
]


TITLES = ["", "ships in the region", "ships in the region, some news", "harbour closed", "harbours closed", "a wall"]


def folded(title: str, sentences: list[str]) -> tuple[str, str, npt.NDArray[np.uint32]]:
    """Return title, folded text and letters of some sentences."""
    text = "".join(sentences)
    return title, text, letters(text)


texts = st.builds(folded, st.sampled_from(TITLES), st.lists(st.sampled_from(SENTENCES), max_size=6))
sources = st.builds(Source, st.just("pages"), st.integers(0, 1), st.integers(0, 40))


BOTH = IndexLayout(slots=2, window=3)
LAYOUTS = [BOTH, IndexLayout(slots=1, window=1), IndexLayout(slots=8, window=12)]


@cache
def keys_of(seed: int) -> bytes:
    """Few different keys in each part, so that cells crowd; no keys at all for 0."""
    chosen = random.Random(seed)
    rows = [sorted(chosen.sample(range(1, 12), chosen.randint(1, 8))) for _ in range(8 if seed else 0)]
    return b"".join(key.to_bytes(4, "little") for row in rows for key in (row + [0] * 8)[:8])


@st.composite
def page_records(draw: st.DrawFn) -> PageRecord:
    """Draw a page near others or far from them, short, without text, with a claim, or of another space."""
    url = draw(urls)
    claimed = draw(st.sampled_from([None, None, None, *(f"https://site1.example/第{at}" for at in range(3))]))
    name = draw(st.sampled_from(['a\n"b', "第", url]))
    page = Page(url=f"{url}?utm_source=x", canonical_url=url, id=name, claimed_url=None if claimed == url else claimed)
    reason = draw(st.sampled_from([None, None, None, "too little text"]))
    body_hash = draw(st.sampled_from([None, 1, 2, 3, 4, 5]))
    text_hash = None if body_hash is None else draw(st.sampled_from([None, 1, 2, *range(10, 40)]))
    metadata = pack(draw(st.sampled_from([(), ("a",), ("a", "b")])))
    evidence = pack_evidence(*draw(texts), metadata)
    keys = keys_of(draw(st.integers(0, 9))) if Evidence(evidence).shingles else b""
    fingerprint = Fingerprint(draw(fingerprints), draw(fingerprints))
    prepared = PreparedPage(page, fingerprint, body_hash, evidence, reason, text_hash, keys)
    return PageRecord(draw(sources), prepared, draw(st.sampled_from([SPACE] * 9 + ["other"])))


policies = st.builds(
    Policy, st.sampled_from(RULES), st.sampled_from(Action), st.just(SPACE), st.sampled_from([BOTH, *LAYOUTS])
)
records = st.one_of(
    page_records(),
    page_records(),
    page_records(),
    st.builds(RejectedRecord, sources, st.just("no JSON")),
    st.builds(RetractionRecord, urls, st.just("gone")),
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
            dropped = kind in {"duplicate", "unchanged"} and outcome.action is Action.DROP
            found[outcome.source] = OracleAnswer(outcome.sequence, kind, value, dropped)
    return found


@settings(max_examples=150)
@given(policies, st.lists(records, max_size=60))
def test_oracle_and_replica_agree_byte_for_byte(first: Policy, later: list[LogRecord]) -> None:
    """Pages, claims, corrections, retractions, policies: every verdict is encoded to the same bytes.

    The window is short, and cells crowd, so that most candidates of a rule with keys come from cells.
    """
    log = [(3 * place, record) for place, record in enumerate([PolicyRecord(first, initial=True), *later])]
    assert answers(log) == replica_answers(log)


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
        evidence = pack_evidence(f"title {offset}", "", letters(""), pack(("a",)))
        page = PreparedPage(Page(url=url, canonical_url=url, id=url), Fingerprint(None, body), offset, evidence)
        log.append((len(log), PageRecord(Source("pages", 0, offset), page, SPACE)))
    assert answers(log) == replica_answers(log)


def test_oracle_and_replica_agree_on_crowds() -> None:
    """Another text, another host, another address of equal pages: the same copy is the first suspicious one."""
    guards = Guards(max_pages=0, max_hosts=0, max_titles=0, surge_percent=1)
    log: list[tuple[int, LogRecord]] = []

    def add(host: str, body: int, body_hash: int) -> None:
        url = f"https://{host}.example/{len(log)}"
        evidence = pack_evidence("one title", "", letters(""), pack(("a",)))
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
