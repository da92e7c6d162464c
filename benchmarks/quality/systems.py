"""The compared systems: each is a measure of similarity between pages.

In the stream a measure gives edges, on the other tasks a value for each labelled pair. A system is scored at
several thresholds: the published ones, and the one with the highest F1 on half 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from benchmarks.quality.edges import Edges
from benchmarks.quality.greedy_dedup import greedy_dedup
from benchmarks.quality.workspace import Workspace
from dedup_service.core.evaluation.scoring import Evaluation, LabelledPair, score_pairs, score_stream

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measure:
    """A system on one task: `edges` of a stream, or the `likeness` of each labelled pair."""

    edges: Edges | None = None
    likeness: Floats | None = None


@dataclass(frozen=True, slots=True)
class System:
    """A compared system.

    measures: by task. thresholds: of likeness, among which the best is chosen. published: thresholds that
    are always shown. words: how a threshold is written, with {} for its absolute value.
    """

    name: str
    measures: Mapping[str, Measure]
    thresholds: Sequence[float]
    published: Sequence[float] = ()
    words: str = "≥ {:g}"


@dataclass(frozen=True, slots=True)
class TaskScore:
    """Scores of a system at one threshold on one task. best: the threshold was chosen on half 0.

    curve: of half 1, (threshold, precision, recall) at every threshold; only on the row of the best one.
    """

    system: str
    task: str
    threshold: float
    setting: str
    best: bool
    by_half: tuple[Evaluation, Evaluation]
    curve: tuple[tuple[float, float, float], ...] = field(default=())


def judge(workspace: Workspace, system: System) -> list[TaskScore]:
    """Return the scores of a system on its tasks, at the published thresholds and at the best one."""
    rows = []
    for task, measure in system.measures.items():
        found = {at: _judged(workspace, task, measure, at) for at in {*system.thresholds, *system.published}}
        best = max(system.thresholds, key=lambda at: (_f1(found[at][0]), at))
        curve = tuple((at, found[at][1].precision, found[at][1].recall) for at in sorted(found))
        for at in dict.fromkeys((*system.published, best)):
            setting = system.words.format(abs(at))
            rows.append(TaskScore(system.name, task, at, setting, at == best, found[at], curve if at == best else ()))
    return rows


def pairs_of_task(
    workspace: Workspace, task: str
) -> tuple[list[LabelledPair], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the labelled pairs of a task and the places of their pages."""
    pairs = workspace.corpora.pairs_of(task)
    places = {page.id: place for place, page in enumerate(workspace.pages(task))}
    one, other = (
        np.array([places[name] for name in names], np.int64)
        for names in zip(*((pair.a, pair.b) for pair in pairs), strict=True)
    )
    return pairs, one, other


def _judged(workspace: Workspace, task: str, measure: Measure, threshold: float) -> tuple[Evaluation, Evaluation]:
    if measure.edges is not None:
        named = greedy_dedup(workspace.prepared("stream"), measure.edges.at_least(threshold))
        first, second = (score_stream(workspace.corpora.truth, named, half=half) for half in (0, 1))
        return first, second
    assert measure.likeness is not None
    pairs = workspace.corpora.pairs_of(task)
    flagged = {(pair.a, pair.b): bool(like >= threshold) for pair, like in zip(pairs, measure.likeness, strict=True)}
    first, second = (score_pairs(pairs, flagged, half=half) for half in (0, 1))
    return first, second


def _f1(evaluation: Evaluation) -> float:
    return -1.0 if np.isnan(evaluation.f1) else evaluation.f1
