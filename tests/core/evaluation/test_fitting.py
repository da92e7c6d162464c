"""Cards fitted to labelled pairs, and what is found in sources that were left out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.evaluation.calibration import Calibration, Channel, curve_of
from dedup_service.core.evaluation.cross_validation import FOLDS, MIN_SOURCES, folds_of, left_out
from dedup_service.core.evaluation.fitting import Flags, Floats, points_of, refitted, scores
from dedup_service.core.evaluation.scoring import LabelledPair
from dedup_service.core.evidence.card import BUILT_IN, QUANTITIES

LARGEST = np.array([of.knots[-1] for of in BUILT_IN.ramps])
OFFSETS = Channel("rule", tuple(round(step / 10, 1) for step in range(40, -41, -1)), at_least=True, home=0.0)


def made(seed: int, count: int, by: str) -> tuple[Floats, Flags]:
    """Return pairs of random quantities, copies where the quantity `by` is of the better half."""
    quantities = np.random.default_rng(seed).random((count, len(QUANTITIES))) * LARGEST
    values = quantities[:, list(QUANTITIES).index(by)]
    return quantities, (values > np.median(values)) == (QUANTITIES[by] > 0)


@settings(max_examples=30)
@given(st.integers(0, 99), st.integers(4, 300), st.sampled_from(list(QUANTITIES)), st.booleans())
def test_every_fit_is_monotone_and_the_same_again(seed: int, count: int, by: str, all_points: bool) -> None:
    """A card has no points below 0, whatever the labels are; its knots stay."""
    quantities, copies = made(seed, count, by)
    card = refitted(BUILT_IN, quantities, copies, all_points=all_points)
    assert points_of(card)[1:].min() >= 0.0
    assert [of.knots for of in card.ramps] == [of.knots for of in BUILT_IN.ramps]
    assert refitted(BUILT_IN, quantities, copies, all_points=all_points) == card


@pytest.mark.parametrize("all_points", [False, True])
@pytest.mark.parametrize("by", ["held of the longer page", "title where the pages differ"])
def test_a_fit_finds_the_quantity_that_decides(by: str, all_points: bool) -> None:
    """It gets more points than before, the others less; so unseen pairs are told apart better."""
    card = refitted(BUILT_IN, *made(1, 1000, by), all_points=all_points)
    quantities, copies = made(2, 500, by)
    before, after = (((scores(of, quantities) > 0) == copies).mean() for of in (BUILT_IN, card))
    assert after > max(before, 0.9)
    share = [sum(of.points) / points_of(card)[1:].sum() for of in card.ramps]
    assert share.index(max(share)) == list(QUANTITIES).index(by)


def test_labels_of_the_card_itself_leave_it_nearly_as_it_is() -> None:
    """Pairs labelled by the score that they have are told apart as before."""
    quantities = made(3, 2000, "facts swapped")[0]
    logits = scores(BUILT_IN, quantities) - np.median(scores(BUILT_IN, quantities))
    copies = np.random.default_rng(4).random(2000) < 1 / (1 + np.exp(-logits))
    card = refitted(BUILT_IN, quantities, copies, all_points=False)
    assert np.corrcoef(scores(card, quantities), scores(BUILT_IN, quantities))[0, 1] > 0.98


@pytest.mark.parametrize(("hosts", "kinds", "source"), [(40, 1, "pair of hosts"), (1, 7, "kind"), (1, 1, "connected")])
def test_a_source_is_in_one_fold(hosts: int, kinds: int, source: str) -> None:
    """It is a pair of hosts, a kind, or connected pages: the first of which there are enough."""
    pairs = [LabelledPair("a", "b", True, f"page {at % 60}", (f"kind {at % kinds}",)) for at in range(120)]
    of_hosts = [f"host {at % hosts}" for at in range(120)]
    by, folds = folds_of(pairs, of_hosts)
    assert by.startswith(source)
    names = {"pair of hosts": of_hosts, "kind": [pair.strata for pair in pairs]}.get(by, [p.component for p in pairs])
    assert len(set(zip(names, folds.tolist(), strict=True))) == len(set(names)) >= MIN_SOURCES
    assert len(set(folds.tolist())) == min(FOLDS, len(set(names)))


def test_what_is_left_out_was_not_chosen_on() -> None:
    """Each fold is decided by the threshold of the others; a grey pair is counted, and not scored."""
    labels = [True, False, None] * 40
    folds = np.repeat([0, 1], 60)
    # In fold 0 copies have 2 and others 1; in fold 1 copies have -1 and others -2.
    offsets = np.array([{True: 2.0, False: 1.0, None: 0.0}[label] for label in labels]) - 3.0 * folds
    calibration = Calibration(0.9, (curve_of(OFFSETS, offsets.tolist(), labels),))
    asked: list[list[int]] = []

    def fitted_on(among: Flags) -> Floats:
        asked.append(sorted(set(folds[among].tolist())))
        return offsets

    found = left_out(calibration, OFFSETS, labels, folds, offsets, fitted_on)
    assert asked == [[1], [0]]
    # Fold 1 puts the threshold between -2 and -1, so all of fold 0 is flagged; fold 0 puts it above all of fold 1.
    assert (found.right, found.wrong, found.missed, found.grey) == (20, 20, 20, 20)


def test_without_both_kinds_the_rule_stays() -> None:
    """One fold is all there is, and leaves nothing to choose on."""
    labels = [True, False] * 20
    offsets = np.array([1.0, -1.0] * 20)
    calibration = Calibration(0.9, (curve_of(OFFSETS, offsets.tolist(), labels),))
    found = left_out(calibration, OFFSETS, labels, np.zeros(40, np.int64), offsets, lambda _: -offsets)
    assert (found.right, found.wrong) == (20, 0)
