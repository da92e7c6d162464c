"""Formatting of figures: shares, counts, intervals and Markdown tables."""

import math
from collections.abc import Iterable, Sequence

from dedup_service.core.evaluation.scoring import Evaluation
from dedup_service.core.evaluation.share import Interval, Share


def figure(value: float, digits: int = 3) -> str:
    """Return a share from 0 to 1 as .987 or 1.000, or – for nan."""
    if math.isnan(value):
        return "–"
    return f"{value:.{digits}f}".removeprefix("0") if 0 < value < 1 else f"{value:.{digits}f}"


def interval(bounds: Interval, digits: int = 3) -> str:
    """Return bounds in brackets."""
    return f"({figure(bounds[0], digits)}–{figure(bounds[1], digits)})"


def with_intervals(evaluation: Evaluation) -> tuple[str, str, str]:
    """Return precision, recall and F1, each with its interval."""
    values = (evaluation.precision, evaluation.recall, evaluation.f1)
    bounds = evaluation.intervals()
    first, second, third = (f"{figure(value)} {interval(bound)}" for value, bound in zip(values, bounds, strict=True))
    return first, second, third


def counted(share: Share | None) -> str:
    """Return a share as `hits of total`, or –."""
    return "–" if share is None else f"{share.hits:,} of {share.total:,}"


def fraction(share: Share | None, digits: int = 3) -> str:
    """Return the value of a share, or –."""
    return "–" if share is None else figure(share.value, digits)


def shares_of(evaluation: Evaluation, names: Sequence[str], *, per_10_000: bool = False) -> str:
    """Return recall by the strata `names`, or false drops per 10,000, separated by slashes."""
    of = evaluation.drops_by if per_10_000 else evaluation.recall_by
    found = [of.get(name) for name in names]
    if per_10_000:
        return " / ".join("–" if share is None else f"{1e4 * share.value:.0f}" for share in found)
    return " / ".join(fraction(share, 2) for share in found)


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
