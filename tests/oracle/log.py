"""Brute force over the log: the verdict on every input record, byte for byte.

Reads the log from its beginning and compares each page with every kept one by counting bits; what shares keys
is looked up in dictionaries (`tests.oracle.kept_pages`). Shares with the code under test its values
(records, rules), the similarity of the evidence of two pages, and which sentences are a host's own text
(`core.decision.host_text`, a fold of the pages alone). A verdict is encoded with the standard library's JSON.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from dedup_service._native import HostText
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity, jaccard
from dedup_service.core.log_records import (
    CorrectionRecord,
    ExpiredRecord,
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    Source,
    TimeRecord,
    UnwrittenRecord,
)
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.url import host_hash
from dedup_service.core.verdict import Action, Distance
from tests.oracle.guards import GuardOracle
from tests.oracle.kept_pages import (
    CHANNELS,
    LONG,
    KeptPage,
    KeptPages,
    least_similarity,
    may_be_similar,
)
from tests.oracle.similarity import estimated_jaccard

SAME_TEXT = "same text"
NO_CLAIM = "its canonical link names a page with another text"

_COSINE = [max(0.0, math.cos(math.pi * bits / 64)) for bits in range(65)]

BEFORE_PAGE, AFTER_PAGE = 8, 1
"""Pages that expire before and after a page, at most."""

Bits = dict[str, int | None]
"""Differing bits by channel; None where either side has no fingerprint."""


@dataclass(frozen=True, slots=True)
class OracleAnswer:
    """The expected answer to an input record.

    value: the bytes of its verdict, None for a rejected record. drops: no duplicate is passed on.
    """

    sequence: int
    verdict: str
    value: bytes | None
    drops: bool = False

    @property
    def dropped(self) -> bool:
        """Whether the page is not passed on."""
        return self.drops and self.verdict in {"duplicate", "unchanged"}


@dataclass(frozen=True, slots=True)
class OracleBase:
    """What a log goes on from: a base with its name. pages: kept there, by sequence, of which all are unique."""

    name: str
    pages: Mapping[int, PreparedPage]


@dataclass(frozen=True, slots=True)
class _Found:
    """The kept page that a page repeats, and why."""

    kept: KeptPage
    bits: Bits
    score: float | None
    reason: str


class Oracle:
    """The state after the records of the log that were read so far.

    answers: by input record; that of records which were deleted before they were read is at the first of them.
    expired: all of these. unwritten: sequences of pages that were never passed on, or that the base has retracted, as
    the log says. base: what the log goes on from, if anything.
    """

    def __init__(self, base: OracleBase | None = None) -> None:
        self._base = base
        self.policy: Policy | None = None
        self.answers: dict[Source, OracleAnswer] = {}
        self.expired: set[Source] = set()
        self.unwritten: set[int] = set()
        self._last_policy = -1
        self._kept = KeptPages(IndexLayout())
        self._host_text = HostText()
        self._same: dict[str, str] = {}
        self._apart: set[frozenset[str]] = set()
        self._guards: GuardOracle | None = None
        self._guarded = False
        self._times: list[tuple[int, int]] = []

    def read(self, sequence: int, record: LogRecord) -> None:  # noqa: C901 - one case for each kind
        """Apply the next record of the log."""
        match record:
            case PolicyRecord():
                self._follow_policy(sequence, record)
            case ExpiredRecord(source, end):
                self._expire(sequence, [replace(source, offset=offset) for offset in range(source.offset, end)])
            case UnwrittenRecord(sequences):
                self.unwritten.update(sequences)
                for url in [url for url in map(self._kept.url_of, sequences) if url is not None]:
                    self._remove(url)
            case TimeRecord(minute):
                if not self._times or minute > self._times[-1][1]:
                    self._times.append((sequence, minute))
            case RetractionRecord():
                self._remove(record.url)
            case CorrectionRecord():
                self._correct(record)
            case RejectedRecord():
                if record.source not in self.expired:
                    self.answers.setdefault(record.source, OracleAnswer(sequence, "rejected", None))
            case PageRecord():
                if record.source not in self.answers and record.source not in self.expired:
                    self.answers[record.source] = self._answer(sequence, record)

    def holds(self, sequence: int) -> bool:
        """Whether the page at `sequence` is kept."""
        return self._kept.url_of(sequence) is not None

    def _let_expire(self, most: int) -> None:
        """Remove the earliest kept pages that are one too many, or too old for the latest time."""
        assert self.policy is not None
        keep = self.policy.keep
        for _ in range(most if keep else 0):
            kept = self._kept.earliest()
            if kept is None:
                return
            too_many = keep.max_pages is not None and len(self._kept) > keep.max_pages
            too_old = keep.max_age_minutes is not None and self._age(kept.sequence) > keep.max_age_minutes
            if not too_many and not too_old:
                return
            self._remove(kept.url)

    def _age(self, sequence: int) -> int:
        """Return how many minutes the log has gone on since a page, 0 without times."""
        if not self._times:
            return 0
        minutes = [minute for before, minute in self._times if before < sequence]
        return self._times[-1][1] - max(minutes, default=self._times[0][1])

    def _expire(self, sequence: int, sources: list[Source]) -> None:
        new = [source for source in sources if source not in self.answers and source not in self.expired]
        self.expired.update(new)
        if new:
            self.answers[new[0]] = OracleAnswer(sequence, "rejected", None)

    def _follow_policy(self, sequence: int, record: PolicyRecord) -> None:
        """Put a policy in force, unless it is void.

        Void are a second initial one, one of another space or layout, and one that replaces an earlier one than
        that in force.
        """
        policy, now = record.policy, self.policy
        if now is not None and (record.initial or (policy.space_id, policy.layout) != (now.space_id, now.layout)):
            return
        if now is not None and record.replaces is not None and record.replaces != self._last_policy:
            return
        self._last_policy = sequence
        if now is None:
            self._kept = KeptPages(policy.layout)
        self.policy = policy
        self._guards = (self._guards or GuardOracle()) if policy.rule.guards else None
        if now is None and self._base is not None:
            for page, prepared in self._base.pages.items():
                self._decide(page, PageRecord(Source(self._base.name, 0, page), prepared, policy.space_id), policy)

    def _answer(self, sequence: int, record: PageRecord) -> OracleAnswer:
        assert self.policy is not None, "a page before any policy"
        verdict, found, reason = self._decide(sequence, record, self.policy)
        drops = self.policy.action is Action.DROP
        in_base = found is not None and self._base is not None and found.kept.sequence in self._base.pages
        base = self._base.name if in_base and self._base is not None else None
        return OracleAnswer(sequence, verdict, _value(sequence, record, verdict, found, reason, base), drops)

    def _decide(self, sequence: int, record: PageRecord, policy: Policy) -> tuple[str, _Found | None, str | None]:
        """Return the verdict, the page that it refers to, and the reason if it refers to none."""
        prepared = record.prepared
        if record.space_id != policy.space_id:
            return "undecided", None, f"made in space {record.space_id}, this log is of {policy.space_id}"
        self._kept.begin()
        self._let_expire(BEFORE_PAGE)
        self._guarded = False
        answer = self._decide_on(sequence, prepared, policy)
        if self._guards is not None and not self._guarded:
            self._guards.unmatched()
        self._let_expire(AFTER_PAGE)
        evidence = Evidence(prepared.evidence)
        if evidence.sentence_values:
            host = host_hash(prepared.page.canonical_url)
            self._host_text.learn(host, evidence.terms, prepared.keys, evidence.sentence_values)
        return answer

    def _decide_on(
        self, sequence: int, prepared: PreparedPage, policy: Policy
    ) -> tuple[str, _Found | None, str | None]:
        if prepared.body_hash is None:
            return "undecided", None, prepared.reason or "no text"
        known = self._kept.by_url(prepared.page.canonical_url)
        if known is not None:
            return self._visited_again(sequence, prepared, known)
        corrected = self._corrected(prepared)
        if corrected is not None:
            return "duplicate", corrected, None
        return self._claiming_or_judged(sequence, prepared, policy)

    def _claiming_or_judged(
        self, sequence: int, prepared: PreparedPage, policy: Policy
    ) -> tuple[str, _Found | None, str | None]:
        """Return the verdict on a page of an unknown URL, which may be a visit of the URL that it claims."""
        claimed = self._kept.by_url(prepared.page.claimed_url)
        if claimed is None or self._are_apart(prepared, claimed):
            return self._judged(sequence, prepared, policy)
        visit = self._compared(policy.rule, claimed, prepared)
        if visit is not None:
            return self._visited_by_claim(prepared, visit)
        verdict, found, reason = self._judged(sequence, prepared, policy)
        if found is None:
            return verdict, None, NO_CLAIM if reason is None else f"{reason}; {NO_CLAIM}"
        return verdict, replace(found, reason=f"{found.reason}; {NO_CLAIM}"), None

    def _judged(self, sequence: int, prepared: PreparedPage, policy: Policy) -> tuple[str, _Found | None, str | None]:
        """Return the verdict by comparison with kept pages."""
        candidates = self._candidates(policy.rule, prepared)
        compared = [(kept, self._compared(policy.rule, kept, prepared)) for kept in candidates]
        found = [one for kept, one in compared if one is not None and not self._are_apart(prepared, kept)]
        if found:
            best = min(found, key=lambda one: (one.reason != SAME_TEXT, -(one.score or 0.0), one.kept.sequence))
            self._guarded = True
            refusal = None if self._guards is None else self._guards.match(best.kept, prepared, policy.rule.guards)
            return ("duplicate", best, None) if refusal is None else ("undecided", None, refusal)
        misses = [self._near_miss(policy.rule, kept, prepared) for kept, one in compared if one is None]
        self._kept.keep(sequence, prepared)
        if prepared.reason is not None:
            return "undecided", None, prepared.reason
        return "unique", None, max(misses, key=lambda miss: miss[0], default=(0.0, None))[1]

    def _candidates(self, rule: MatchRule, prepared: PreparedPage) -> list[KeptPage]:
        """Return the candidates; of many, those that may be similar without the host's own text."""
        evidence = Evidence(prepared.evidence)
        common = self._common(prepared, evidence.sentence_values)
        found = self._kept.candidates(rule, prepared, common)
        if not rule.verified:
            return found
        return [
            kept
            for kept in found
            if _same_text(kept.prepared, prepared)
            or may_be_similar(kept.prepared.evidence, evidence, common, least_similarity(rule))
        ]

    def _common(self, prepared: PreparedPage, sentences: Sequence[int]) -> list[int]:
        """Return those of some sentences that are text of a page's host."""
        are_common = self._host_text.common(host_hash(prepared.page.canonical_url), sentences)
        return list(compress(sentences, are_common))

    def _compared(self, rule: MatchRule, kept: KeptPage, prepared: PreparedPage) -> _Found | None:
        """Return the match with a kept page, None if the rule does not accept it."""
        bits = _distance(kept.prepared, prepared)
        if _same_text(kept.prepared, prepared):
            return _Found(kept, bits, 1.0, SAME_TEXT)
        if not rule.verified:
            accepted = _accepted_by_distance(rule, bits, kept.prepared, prepared)
            return None if accepted is None else _Found(kept, bits, *accepted)
        similarity = self._similarity(rule, kept, prepared)
        if similarity is None:
            return None
        names = [row.name for row in rule.verified if row.holds(similarity)]
        return _Found(kept, bits, round(similarity.jaccard, 4), names[0]) if names else None

    def _near_miss(self, rule: MatchRule, kept: KeptPage, prepared: PreparedPage) -> tuple[float, str | None]:
        """Return rank and reason of a candidate that is no match; (0, None) if there is nothing to say."""
        similarity = self._similarity(rule, kept, prepared) if rule.verified else None
        if similarity is None:
            return 0.0, None
        name = kept.prepared.page.id
        if any(replace(row, figures=None).holds(similarity) for row in rule.verified):
            return 1.0 + similarity.jaccard, f"differs in a figure from {name}"
        if similarity.length_ratio <= 1.5 or similarity.containment < 0.9:
            return 0.0, None
        longer = Evidence(prepared.evidence).letters > Evidence(kept.prepared.evidence).letters
        return similarity.containment, f"{'contains' if longer else 'is contained in'} {name}"

    def _similarity(self, rule: MatchRule, kept: KeptPage, prepared: PreparedPage) -> Similarity | None:
        """Return the similarity without the hosts' own text; None for pages that are not compared."""
        ours, theirs = Evidence(kept.prepared.evidence), Evidence(prepared.evidence)
        sentences = sorted({*ours.sentence_values, *theirs.sentence_values})
        common = sorted({*self._common(kept.prepared, sentences), *self._common(prepared, sentences)})
        hosts = {host_hash(page.page.canonical_url) for page in (kept.prepared, prepared)}
        if estimated_jaccard(ours.sketch, theirs.sketch) < least_similarity(rule):
            return None
        distance = Distance(**_distance(kept.prepared, prepared))
        return Similarity(ours, theirs, distance, common, same_host=len(hosts) == 1, card=rule.card)

    def _are_apart(self, prepared: PreparedPage, kept: KeptPage) -> bool:
        return frozenset((prepared.page.canonical_url, kept.url)) in self._apart

    def _visited_by_claim(self, prepared: PreparedPage, visit: _Found) -> tuple[str, _Found, None]:
        if visit.kept.prepared.body_hash == prepared.body_hash:
            return "unchanged", replace(visit, score=1.0, reason="canonical link, same body"), None
        return "updated", replace(visit, reason="canonical link, other body"), None

    def _visited_again(self, sequence: int, prepared: PreparedPage, known: KeptPage) -> tuple[str, _Found, None]:
        bits = _distance(known.prepared, prepared)
        if known.prepared.body_hash == prepared.body_hash:
            return "unchanged", _Found(known, bits, 1.0, "same URL, same body"), None
        self._remove(known.url)
        self._kept.keep(sequence, prepared)
        return "updated", _Found(known, bits, _score(bits), "same URL, other body"), None

    def _corrected(self, prepared: PreparedPage) -> _Found | None:
        """Return the kept page of which a person called this one a duplicate."""
        kept = self._kept.by_url(self._same.get(prepared.page.canonical_url))
        if kept is None:
            return None
        bits = _distance(kept.prepared, prepared)
        return _Found(kept, bits, _score(bits) or 0.0, "a person called it a duplicate")

    def _remove(self, url: str) -> None:
        """Remove the kept page of a canonical URL, if there is one."""
        kept = self._kept.by_url(url)
        self._kept.remove(url)
        if kept is not None and self._guards is not None:
            self._guards.removed(kept.sequence)

    def _correct(self, record: CorrectionRecord) -> None:
        for one, other in ((record.url, record.original), (record.original, record.url)):
            if self._same.get(one) == other:
                del self._same[one]
        pair = frozenset((record.url, record.original))
        if record.duplicate:
            self._apart.discard(pair)
            self._same[record.url] = record.original
            self._remove(record.url)
        else:
            self._apart.add(pair)


def oracle_of(log: Iterable[tuple[int, LogRecord]], base: OracleBase | None = None) -> Oracle:
    """Return the oracle after a log, given as (offset, record). base: what it goes on from."""
    oracle = Oracle(base)
    for sequence, record in log:
        oracle.read(sequence, record)
    return oracle


def answers(log: Iterable[tuple[int, LogRecord]]) -> dict[Source, OracleAnswer]:
    """Return the answer to every input record of a log, given as (offset, record)."""
    return oracle_of(log).answers


def _distance(one: PreparedPage, other: PreparedPage) -> Bits:
    bits: Bits = {}
    for channel in CHANNELS:
        left, right = getattr(one.fingerprint, channel), getattr(other.fingerprint, channel)
        bits[channel] = None if left is None or right is None else (left ^ right).bit_count()
    return bits


def _score(bits: Bits) -> float | None:
    likeness = [_COSINE[count] for count in bits.values() if count is not None]
    return round(sum(likeness) / len(likeness), 4) if likeness else None


def _same_text(one: PreparedPage, other: PreparedPage) -> bool:
    if one.text_hash is not None and one.text_hash == other.text_hash:
        return True
    if one.body_hash is None or one.body_hash != other.body_hash:
        return False
    return min(Evidence(one.evidence).size, Evidence(other.evidence).size) >= LONG


def _accepted_by_distance(
    rule: MatchRule, bits: Bits, kept: PreparedPage, prepared: PreparedPage
) -> tuple[float, str] | None:
    """Return score and reason if a rule without a table accepts the pair, else None."""
    ours, theirs = Evidence(kept.evidence), Evidence(prepared.evidence)
    for condition in rule.conditions:
        bounds = {"words": condition.words, "body": condition.body}
        if all(bound is None or _at_most(bits[channel], bound) for channel, bound in bounds.items()):
            return _score(bits) or 0.0, str(condition)
    words = bits["words"]
    if rule.combined is not None and words is not None and words <= rule.combined.radius:
        similarity = rule.combined.similarity(words, jaccard(ours.metadata, theirs.metadata))
        if similarity >= rule.combined.threshold:
            return round(float(similarity), 4), "combined similarity ≥ .25"
    return None


def _at_most(bits: int | None, bound: int) -> bool:
    return bits is not None and bits <= bound


def _value(
    sequence: int, record: PageRecord, verdict: str, found: _Found | None, reason: str | None, base: str | None
) -> bytes:
    page, of = record.prepared.page, None if found is None else found.kept.prepared.page
    fields: dict[str, Any] = {
        "id": page.id,
        "url": page.url,
        "verdict": verdict,
        "duplicate_of": None if of is None else of.id,
        "duplicate_of_url": None if of is None else of.url,
        **({} if base is None else {"duplicate_of_base": base}),
        "distance": {"words": None, "body": None} if found is None else found.bits,
        "score": None if found is None else found.score,
        "reason": reason if found is None else found.reason,
        "sequence": sequence,
        "space": record.space_id,
        "topic": record.source.topic,
        "partition": record.source.partition,
        "offset": record.source.offset,
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
