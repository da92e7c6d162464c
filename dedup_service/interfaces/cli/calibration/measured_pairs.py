"""Measure labelled pairs on each channel: the values that thresholds are chosen on.

The value of the rule comes from the decider itself, tried at several offsets as `evaluate` tries it at one.
So `evaluate --profile` reproduces the figures of the chosen threshold.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from dedup_service.core.decision.decider import Decider
from dedup_service.core.decision.entries import distance_between
from dedup_service.core.evaluation.calibration import Channel, Curve, curve_of, offsets_of, tightened, tightest_offset
from dedup_service.core.evaluation.scoring import LabelledPair
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import MAX_RADIUS, Similarity
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.rule import BITS, MatchRule
from dedup_service.core.verdict import Distance, VerdictKind
from dedup_service.interfaces.cli.commands.pairs import Comparer, NoNames

DISTANCES = tuple(float(bits) for bits in range(BITS + 1))

WORDS = Channel("words", DISTANCES, largest=MAX_RADIUS)
BODY = Channel("body", DISTANCES, largest=MAX_RADIUS)
JACCARD = Channel("jaccard", tuple(round(step / 100, 2) for step in range(100, -1, -1)), at_least=True)
RULE = "rule"

NOT_FLAGGED = frozenset({VerdictKind.UNIQUE, VerdictKind.UNDECIDED})


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """The values of a pair on each channel.

    words, body: distances in bits. jaccard: estimated. rule: the tightest offset that flags the pair.
    None: the channel cannot compare the pages (too short, no text), or no offset flags the pair.
    """

    words: float | None
    body: float | None
    jaccard: float | None
    rule: float | None


class PairMeasurer:
    """Measures pairs by the family of `rule`, in one space; ConfigurationError if it has no family."""

    def __init__(self, rule: MatchRule, space_id: str) -> None:
        self._rule, self.space_id = rule, space_id
        # Of equally good offsets, the one nearest to the unchanged profile is chosen.
        self.channel = Channel(RULE, offsets_of(rule), at_least=True, home=0.0)
        self._comparers: dict[float, Comparer] = {}

    def measure(self, a: PreparedPage, b: PreparedPage) -> MeasuredPair:
        """Return the values of `b` after `a`."""
        comparable = a.reason is None and b.reason is None
        distance = distance_between(a.fingerprint, b.fingerprint) if comparable else Distance()
        one, other = Evidence(a.evidence), Evidence(b.evidence)
        jaccard = Similarity(one, other).jaccard if one.shingles and other.shingles else None
        offset = tightest_offset(partial(self.flags, a, b), self.channel.thresholds)
        return MeasuredPair(distance.words, distance.body, jaccard, offset)

    def flags(self, a: PreparedPage, b: PreparedPage, offset: float) -> bool:
        """Return whether the rule at this offset flags `b` after `a`: neither unique nor undecided."""
        comparer = self._comparers.get(offset)
        if comparer is None:
            decider = Decider(tightened(self._rule, offset), self.space_id, NoNames())
            comparer = self._comparers[offset] = Comparer(decider)
        return VerdictKind(comparer.compare(a, b)["verdict"]) not in NOT_FLAGGED


def curves_of(
    pairs: Iterable[LabelledPair], prepared: Mapping[str, PreparedPage], measurer: PairMeasurer
) -> tuple[Curve, ...]:
    """Return one curve for each channel, over the pairs whose pages are in `prepared`.

    Raises ConfigurationError if the labels are not enough to choose by.
    """
    known = [pair for pair in pairs if pair.a in prepared and pair.b in prepared]
    labels = [pair.duplicate for pair in known]
    measured = [measurer.measure(prepared[pair.a], prepared[pair.b]) for pair in known]
    channels = (WORDS, BODY, JACCARD, measurer.channel)
    return tuple(curve_of(channel, [getattr(row, channel.name) for row in measured], labels) for channel in channels)
