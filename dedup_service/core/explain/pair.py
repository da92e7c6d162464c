"""Two pages and a rule: who brings them together, what is asked of them, and what comes of it.

The answer itself is the matcher's own, asked again; channels, keys and rows say how it came about.
"""

from dataclasses import dataclass

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.matching import WORTH_A_LOOK, Containment, Match, Matcher
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.explain.channels import ChannelView, compare_channel
from dedup_service.core.explain.rule_table import RowView, nearest_row, rows_of
from dedup_service.core.page import CHANNELS, Fingerprint, Page, PreparedPage
from dedup_service.core.rules.rule import MatchRule

__all__ = ["PairView", "explain_pair"]

_NOBODY = Page(url="", canonical_url="", id="")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairView:
    """A page (one) and a kept one (other) before a rule.

    channels: words and body. keys_used: whether the rule looks for shared keys. shared_keys: uint32 values that both
    have; keys: how many each has. likeness: of their evidence. looked_at: the rough estimate was worth a look. rows: of
    the rule. found: the matcher's answer, whoever brought the two together. judged: True, a person called them
    duplicates; False, said they are none; None, nobody said anything.
    """

    channels: tuple[ChannelView, ...]
    keys_used: bool
    shared_keys: tuple[int, ...]
    keys: tuple[int, int]
    likeness: Similarity
    looked_at: bool
    rows: tuple[RowView, ...]
    found: Match | Containment | None
    judged: bool | None = None

    @property
    def found_by(self) -> tuple[str, ...]:
        """Who brings the two together: tables and shared keys; empty where nobody does.

        Of a key that very many pages share only the earliest are looked at, so keys alone may not suffice.
        """
        tables = [f"{at.channel} table {at.table}" for at in self.channels if at.table is not None]
        count = len(self.shared_keys) if self.keys_used else 0
        return (*tables, *([f"{count} key{'s' * (count > 1)}"] if count else []))

    @property
    def matches(self) -> bool:
        """Whether the rule calls them near-duplicates, whatever people said."""
        return bool(self.found_by) and isinstance(self.found, Match)

    @property
    def row(self) -> str | None:
        """The row, or condition, that says so; None where they do not match."""
        return self.found.reason if self.matches and isinstance(self.found, Match) else None

    @property
    def nearest(self) -> RowView | None:
        """The row that holds, or comes nearest."""
        return nearest_row(self.rows)

    @property
    def why_not(self) -> str | None:
        """In words, why they do not match; None where they do."""
        if self.matches:
            return None
        if not self.found_by:
            return f"no index brings the two together: {self._apart()}"
        if not self.looked_at:
            return "too few shingles in common, by a rough estimate, for the rule to be asked"
        nearest = self.nearest
        if nearest is None or nearest.holds:  # a rule without rows
            return "the rule asks for something else"
        held = "" if self.found is None or isinstance(self.found, Match) else f"; it {self.found.reason} the other"
        return f"{nearest.name}: {nearest.failed[0]}{held}"

    def _apart(self) -> str:
        parts = []
        for at in self.channels:
            if at.radius is None:
                continue
            if at.distance is None:
                parts.append(f"{at.channel} has no fingerprint on a side")
            elif not at.judged:
                parts.append(f"{at.channel} is not asked of so short a text")
            else:
                parts.append(f"{at.channel} differs in {at.distance} bits, its index reaches {at.radius}")
        return ", ".join([*parts, *(["no key is shared"] if self.keys_used else [])])


def explain_pair(
    rule: MatchRule,
    one: Entry,
    other: Entry,
    *,
    overrides: Overrides | None = None,
) -> PairView:
    """Return what `rule` says of the page `one`, as if it came now, and the kept page `other`."""
    evidence, kept = Evidence(one.evidence), Evidence(other.evidence)
    shared = sorted(_keys(evidence) & _keys(kept))
    likeness = Similarity(kept, evidence, other.distance_to(Fingerprint(one.words, one.body)))
    return PairView(
        channels=tuple(
            compare_channel(
                name,
                one.channel(name),
                other.channel(name),
                rule.radius(name),
                judged=one.indexed and other.indexed,
            )
            for name in CHANNELS
        ),
        keys_used=rule.keys,
        shared_keys=tuple(shared),
        keys=(len(_keys(evidence)), len(_keys(kept))),
        likeness=likeness,
        looked_at=not rule.verified or evidence.rough_jaccard(other.evidence) >= _worth_a_look(rule),
        rows=rows_of(rule, likeness),
        found=Matcher(rule).compare(other, _prepared(one), evidence),
        judged=None if overrides is None else _judged(overrides, one.url_hash, other.url_hash),
    )


def _prepared(entry: Entry) -> PreparedPage:
    return PreparedPage(_NOBODY, Fingerprint(entry.words, entry.body), entry.body_hash, evidence=entry.evidence)


def _keys(evidence: Evidence) -> set[int]:
    return {key for key in evidence.keys.tolist() if key}


def _worth_a_look(rule: MatchRule) -> float:
    return min((WORTH_A_LOOK, *(row.jaccard for row in rule.verified)))


def _judged(overrides: Overrides, one: int, other: int) -> bool | None:
    if overrides.apart(one, other):
        return False
    return True if overrides.duplicate_of(one) == other or overrides.duplicate_of(other) == one else None
