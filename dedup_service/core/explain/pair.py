"""Two pages and a rule: what finds the pair, what the rule checks, and the result.

The result is the matcher's own, computed again; channels, keys and rows explain it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from dedup_service._native import ComparedPages, Entry, Rule
from dedup_service.core.decision.entries import distance_between
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.evidence.keys import LEVELS, unpacked_keys
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.explain.channels import ChannelView, compare_channel
from dedup_service.core.explain.rule_table import RowView, nearest_row, rows_of
from dedup_service.core.explain.score import ScoreView, score_under
from dedup_service.core.index import path_keys
from dedup_service.core.page import CHANNELS
from dedup_service.core.rules.rule import MatchRule

SAME_TEXT = "same text"
"""The reason of a match of equal texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairView:
    """A page (one) and a kept page (other), compared by a rule.

    channels: words and body. keys_used: whether the rule uses keys. shared_keys: those that both have;
    keys: how many each has. similarity: of their evidence. compared: whether the rough estimate is high
    enough for the rule to be checked. rows: of the rule. found: the matcher's result, whatever finds the
    pair.
    override: True if a correction calls them duplicates, False if it says they are not, None without one.
    """

    channels: tuple[ChannelView, ...]
    keys_used: bool
    shared_keys: tuple[int, ...]
    keys: tuple[int, int]
    similarity: Similarity
    compared: bool
    rows: tuple[RowView, ...]
    found: ComparedPages | None
    override: bool | None = None

    @property
    def found_by(self) -> tuple[str, ...]:
        """What finds the pair: an equal text, tables and shared keys; empty if nothing does.

        Of a key that very many pages share, only the earliest are looked at, so keys alone may not suffice.
        """
        text = [SAME_TEXT] if self._is_match and self.found is not None and self.found.reason == SAME_TEXT else []
        tables = [f"{view.channel} table {view.table}" for view in self.channels if view.table is not None]
        count = len(self.shared_keys) if self.keys_used else 0
        return (*text, *tables, *([f"{count} key{'s' * (count > 1)}"] if count else []))

    @property
    def host_letters(self) -> tuple[int, int]:
        """How many letters of each page do not count because they are a host's own text, estimated."""
        kept, page = self.similarity.common_letters
        return round(page), round(kept)

    @property
    def matches(self) -> bool:
        """Whether the rule calls them near-duplicates; corrections are not considered."""
        return bool(self.found_by) and self._is_match

    @property
    def row(self) -> str | None:
        """The row or condition that holds; None if they do not match."""
        return self.found.reason if self.matches and self.found is not None else None

    @property
    def nearest(self) -> RowView | None:
        """The row that holds, or the nearest one."""
        return nearest_row(self.rows)

    @property
    def score(self) -> ScoreView | None:
        """The score, quantity by quantity; None if no row of the rule bounds it."""
        return score_under(self.rows, self.similarity)

    @property
    def why_not(self) -> str | None:
        """Why they do not match, in words; None if they do."""
        if self.matches:
            return None
        if not self.found_by:
            return f"no index brings the two together: {self._apart()}"
        if not self.compared:
            return "too few shingles in common, by a rough estimate, for the rule to be checked"
        nearest = self.nearest
        if nearest is None or nearest.holds:  # a rule without rows
            return "no condition of the rule holds"
        containment = "" if self.found is None or self._is_match else f"; it {self.found.reason} the other"
        return f"{nearest.name}: {nearest.failed[0]}{containment}"

    @property
    def _is_match(self) -> bool:
        """Whether the rule accepts the two texts, whatever finds the pair."""
        return self.found is not None and self.found.score is not None

    def _apart(self) -> str:
        parts = []
        for view in self.channels:
            if view.radius is None:
                continue
            if view.distance is None:
                parts.append(f"{view.channel} has no fingerprint in one of the pages")
            elif not view.indexed:
                parts.append(f"{view.channel} is not searched for so short a text")
            else:
                parts.append(f"{view.channel} differs in {view.distance} bits, its index searches {view.radius}")
        return ", ".join([*parts, *(["no key is shared"] if self.keys_used else [])])


def explain_pair(
    rule: MatchRule,
    one: Entry,
    other: Entry,
    *,
    overrides: Overrides | None = None,
    common: Sequence[int] = (),
) -> PairView:
    """Return the comparison of the page `one`, as if it arrived now, with the kept page `other`.

    common: values of sentences that the host of either page repeats, ascending.
    """
    evidence, kept, compiled = Evidence(one.evidence), Evidence(other.evidence), Rule(rule)
    ours, theirs = _keys(one), _keys(other)
    same_host = one.host == other.host
    similarity = Similarity(kept, evidence, distance_between(other, one), common, same_host, rule.card)
    return PairView(
        channels=tuple(
            compare_channel(
                name,
                getattr(one, name),
                getattr(other, name),
                rule.radius(name),
                indexed=one.indexed and other.indexed,
            )
            for name in CHANNELS
        ),
        keys_used=rule.keys,
        shared_keys=tuple(sorted(ours & theirs)),
        keys=(len(ours), len(theirs)),
        similarity=similarity,
        compared=not rule.verified or evidence.rough_jaccard(other.evidence) >= compiled.min_rough_jaccard,
        rows=rows_of(rule, similarity),
        found=compiled.compare(other, one, common),
        override=None if overrides is None else _override(overrides, one.url_hash, other.url_hash),
    )


def _keys(entry: Entry) -> set[int]:
    """Return the keys of an entry; of one that has left the window, those of its path through the cells."""
    keys = path_keys(entry.keys) if entry.settled else chain.from_iterable(unpacked_keys(entry.keys, LEVELS))
    return {key for key in keys if key}


def _override(overrides: Overrides, one: int, other: int) -> bool | None:
    if overrides.are_distinct(one, other):
        return False
    return True if overrides.duplicate_of(one) == other or overrides.duplicate_of(other) == one else None
