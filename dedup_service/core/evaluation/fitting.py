"""Fits the card of the score to labelled pairs: the points of its ramps, or a factor for each quantity.

A logistic regression says how much each column counts: how far up each ramp a pair is, or what a quantity adds by the
card as it is. No coefficient is below 0, so the card stays monotone. Coefficients are drawn to what they are expected
to be (a ridge penalty): pairs that say little of a ramp leave it as it was. Knots stay.

Invariant: the same pairs in the same order give the same card, on one machine.
Source: Bertsekas, "Projected Newton methods for optimization problems with simple constraints", 1982.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.card import QUANTITIES, Card

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

FACTORS_FROM, POINTS_FROM = 200, 1000
"""Labelled pairs from which `calibrate` fits a factor for each quantity, and the points of each ramp."""

SPREAD = 0.5
"""How far a coefficient is expected to be from what it was, in points or as a share: one standard deviation."""


def ramps(card: Card, quantities: Floats) -> Floats:
    """Return how far up each ramp of the card each pair is, with the sign of its quantity: float64[n, ramps].

    quantities: float64[n, 9], in the order of QUANTITIES.
    """
    columns = [
        sign * np.clip((values - low) / (high - low), 0, 1)
        for sign, of, values in zip(QUANTITIES.values(), card.ramps, quantities.T, strict=True)
        for low, high in pairwise(of.knots)
    ]
    return np.stack(columns, axis=1)


def points_of(card: Card) -> Floats:
    """Return the bias and the points of each ramp of the card: float64[1 + ramps]."""
    return np.array([card.bias, *(points for of in card.ramps for points in of.points)])


def scores(card: Card, quantities: Floats) -> Floats:
    """Return the score of each pair by the card: float64[n]. quantities: as in `ramps`."""
    points = points_of(card)
    return np.asarray(points[0] + ramps(card, quantities) @ points[1:])


def fitted(columns: Floats, copies: Flags, weights: Floats, expected: Floats, penalty: float) -> Floats:
    """Return the bias and a coefficient for each column, 0 or more: float64[1 + k].

    columns: float64[n, k]. copies: bool[n], the truth. weights: float64[n], with the sum 1. expected: float64[k], to
    which coefficients are drawn. penalty: of their squared difference, beside the mean loss in nats.
    """
    columns = np.insert(columns, 0, 1, axis=1)
    signs = np.where(copies, 1.0, -1.0)
    home, penalties = np.append(0, expected), np.append(0, np.full(len(expected), penalty))
    lowest = np.append(-np.inf, np.zeros(len(expected)))

    def loss(points: Floats) -> float:
        of_pairs = weights @ np.logaddexp(0, -signs * (columns @ points))
        return float(of_pairs + penalties @ (points - home) ** 2)

    points = home.copy()
    for _ in range(100):
        wrong = 1 / (1 + np.exp(signs * (columns @ points)))
        gradient = -columns.T @ (weights * signs * wrong) + 2 * penalties * (points - home)
        curvature = (columns.T * (weights * wrong * (1 - wrong))) @ columns + 2 * np.diag(penalties)
        free = (points > lowest) | (gradient < 0)
        step = np.zeros_like(points)
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
        tries = (np.maximum(points - size * step, lowest) for size in 0.5 ** np.arange(30))
        following = next((new for new in tries if loss(new) < loss(points)), points)
        if np.abs(following - points).max() < 1e-6:
            break
        points = following
    return points


def refitted(card: Card, quantities: Floats, copies: Flags, *, all_points: bool) -> Card:
    """Return the card with points that fit labelled pairs: all of them, or those of each quantity times a factor.

    quantities, copies: float64[n, 9] and bool[n], as in `ramps` and `fitted`; some of both kinds.
    """
    columns, was = ramps(card, quantities), points_of(card)[1:]
    quantity_of = np.repeat(np.arange(len(card.ramps)), [len(of.points) for of in card.ramps])
    if not all_points:
        each = np.arange(len(card.ramps))[:, None] == quantity_of  # bool[9, ramps]
        columns = (columns * was) @ each.T
    expected = was if all_points else np.ones(len(card.ramps))
    count = len(copies)
    found = fitted(columns, copies, np.full(count, 1 / count), expected, 1 / (2 * SPREAD**2 * count))
    points = found[1:] if all_points else was * found[1:][quantity_of]
    return card.with_points(round(float(found[0]), 3), np.round(points, 3).tolist())
