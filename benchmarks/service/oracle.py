"""Brute force over the log: the verdict on every input record, byte for byte.

Reads the log from its beginning and compares each page with every kept one by counting bits
(`benchmarks.service.kept_pages`). Shares with the code under test only its values (records, rules) and the
similarity of the evidence of two pages. A verdict is encoded with the standard library's JSON.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.service.guard_oracle import GuardOracle
from benchmarks.service.kept_pages import CHANNELS, KeptPage, KeptPages
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity, jaccard
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
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action, Distance

__all__ = ["Oracle", "OracleAnswer", "answers"]

_COSINE = [max(0.0, math.cos(math.pi * bits / 64)) for bits in range(65)]

Bits = dict[str, int | None]
"""Differing bits by channel; None where either side has no fingerprint."""


@dataclass(frozen=True, slots=True)
class OracleAnswer:
    """The expected answer to an input record.

    value: the bytes of its verdict, None for a rejected record. dropped: the action keeps the page from
    being passed on.
    """

    sequence: int
    verdict: str
    value: bytes | None
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    """The kept page that a page repeats, and why."""

    kept: KeptPage
    bits: Bits
    score: float | None
    reason: str


class Oracle:
    """The state after the records of the log that were read so far."""

    def __init__(self) -> None:
        self.policy: Policy | None = None
        self.answers: dict[Source, OracleAnswer] = {}
        self._kept = KeptPages()
        self._same: dict[str, str] = {}
        self._apart: set[frozenset[str]] = set()
        self._guards: GuardOracle | None = None

    def read(self, sequence: int, record: LogRecord) -> None:
        """Apply the next record of the log."""
        match record:
            case PolicyRecord():
                if self.policy is None or (not record.initial and record.policy.space_id == self.policy.space_id):
                    self.policy = record.policy
                    self._guards = (self._guards or GuardOracle()) if record.policy.rule.guards else None
            case RetractionRecord():
                self._remove(record.url)
            case CorrectionRecord():
                self._correct(record)
            case RejectedRecord():
                self.answers.setdefault(record.source, OracleAnswer(sequence, "rejected", None))
            case PageRecord():
                if record.source not in self.answers:
                    self.answers[record.source] = self._answer(sequence, record)

    def _answer(self, sequence: int, record: PageRecord) -> OracleAnswer:
        assert self.policy is not None, "a page before any policy"
        verdict, found, reason = self._decide(sequence, record, self.policy)
        drops = self.policy.action is Action.DROP and verdict in {"duplicate", "unchanged"}
        return OracleAnswer(sequence, verdict, _value(sequence, record, verdict, found, reason), drops)

    def _decide(self, sequence: int, record: PageRecord, policy: Policy) -> tuple[str, _Found | None, str | None]:
        """Return the verdict, the page that it refers to, and the reason if it refers to none."""
        prepared = record.prepared
        if record.space_id != policy.space_id:
            return "undecided", None, f"made in space {record.space_id}, this log is of {policy.space_id}"
        found = self._matched(policy.rule, prepared)
        if self._guards is None:
            return self._decide_on(sequence, prepared, policy, found)
        if found is None:
            self._guards.unmatched()
            return self._decide_on(sequence, prepared, policy, None)
        refusal = self._guards.match(found.kept, prepared, policy.rule.guards)
        return ("duplicate", found, None) if refusal is None else ("undecided", None, refusal)

    def _matched(self, rule: MatchRule, prepared: PreparedPage) -> _Found | None:
        """Return the match by fingerprints and evidence; None for known URLs and corrected pages."""
        if prepared.body_hash is None or self._kept.by_url(prepared.page.canonical_url) or self._corrected(prepared):
            return None
        return self._most_similar(rule, prepared)

    def _decide_on(
        self, sequence: int, prepared: PreparedPage, policy: Policy, found: _Found | None
    ) -> tuple[str, _Found | None, str | None]:
        if prepared.body_hash is None:
            return "undecided", None, prepared.reason or "no text"
        known = self._kept.by_url(prepared.page.canonical_url)
        if known is not None:
            return self._visited_again(sequence, prepared, known)
        found = self._corrected(prepared) or found
        if found is not None:
            return "duplicate", found, None
        containment = self._containment(policy.rule, prepared)
        self._kept.keep(sequence, prepared)
        return ("unique", None, containment) if prepared.reason is None else ("undecided", None, prepared.reason)

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

    def _most_similar(self, rule: MatchRule, prepared: PreparedPage) -> _Found | None:
        """Return the most similar kept page that the rule accepts, the earliest of equals."""
        found = []
        for kept in self._kept.candidates(rule, prepared):
            bits = _distance(kept.prepared, prepared)
            accepted = _accepted(rule, bits, kept.prepared, prepared)
            if accepted is not None and frozenset((prepared.page.canonical_url, kept.url)) not in self._apart:
                found.append(_Found(kept, bits, *accepted))
        return min(found, key=lambda one: (-(one.score or 0.0), one.kept.sequence), default=None)

    def _containment(self, rule: MatchRule, prepared: PreparedPage) -> str | None:
        """Return which candidate contains the page or is contained in it, with a length ratio over 1.5."""
        best, reason = 0.0, None
        candidates = self._kept.candidates(rule, prepared) if rule.verified else []
        for kept in sorted(candidates, key=lambda kept: kept.sequence):
            ours, theirs = Evidence(kept.prepared.evidence), Evidence(prepared.evidence)
            likeness = Similarity(ours, theirs)
            if likeness.jaccard < 0.15:
                continue
            if likeness.length_ratio > 1.5 and likeness.containment >= 0.9 and likeness.containment > best:
                best = likeness.containment
                relation = "contains" if theirs.letters > ours.letters else "is contained in"
                reason = f"{relation} {kept.prepared.page.id}"
        return reason

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


def answers(log: Iterable[tuple[int, LogRecord]]) -> dict[Source, OracleAnswer]:
    """Return the answer to every input record of a log, given as (offset, record)."""
    oracle = Oracle()
    for sequence, record in log:
        oracle.read(sequence, record)
    return oracle.answers


def _distance(one: PreparedPage, other: PreparedPage) -> Bits:
    bits: Bits = {}
    for channel in CHANNELS:
        left, right = getattr(one.fingerprint, channel), getattr(other.fingerprint, channel)
        bits[channel] = None if left is None or right is None else (left ^ right).bit_count()
    return bits


def _score(bits: Bits) -> float | None:
    likeness = [_COSINE[count] for count in bits.values() if count is not None]
    return round(sum(likeness) / len(likeness), 4) if likeness else None


def _accepted(rule: MatchRule, bits: Bits, kept: PreparedPage, prepared: PreparedPage) -> tuple[float, str] | None:
    """Return score and reason if the rule accepts the pair, else None."""
    ours, theirs = Evidence(kept.evidence), Evidence(prepared.evidence)
    if rule.verified:
        likeness = Similarity(ours, theirs, Distance(**bits))
        rows = (row.name for row in rule.verified if row.holds(likeness))
        return next(((round(likeness.jaccard, 4), name) for name in rows), None)
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


def _value(sequence: int, record: PageRecord, verdict: str, found: _Found | None, reason: str | None) -> bytes:
    page, of = record.prepared.page, None if found is None else found.kept.prepared.page
    fields: dict[str, Any] = {
        "id": page.id,
        "url": page.url,
        "verdict": verdict,
        "duplicate_of": None if of is None else of.id,
        "duplicate_of_url": None if of is None else of.url,
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
