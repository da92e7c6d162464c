"""Ablation of the published weights: factors added one after the other, and each factor removed alone.

The papers do not report it. The ladder starts from relative tf·idf and adds, in the order of the sources,
word length, part of speech, marker words and title. All spaces use the `words` channel and distance alone,
as the papers do. The pages of the stream have no metadata; the effect of metadata is measured on the HTML
pages (`baselines`).
"""

from benchmarks.quality.baselines import schemes
from benchmarks.quality.systems import TaskScore, judge
from benchmarks.quality.work import tracked
from benchmarks.quality.workspace import Workspace
from dedup_service.runtime.resources import SpaceOptions

LADDER = {
    "tf·idf": ("pos", "length", "marker", "title"),
    "+ length": ("pos", "marker", "title"),
    "+ part of speech": ("marker", "title"),
    "+ marker": ("title",),
    "+ title": (),
}
"""Steps of the ladder with the factors of zhang2020 that are still off."""

REMOVED = {
    "zhang2020": ("idf", "length", "pos", "marker", "title"),
    "wang2019": ("idf", "length"),
    "twinsieve": ("idf", "marker", "title"),
}


def spaces() -> dict[str, SpaceOptions]:
    """Return the spaces to measure, by label."""
    found = {f"zhang2020: {step}": SpaceOptions(scheme="zhang2020", without=off) for step, off in LADDER.items()}
    for scheme, factors in REMOVED.items():
        found[scheme] = SpaceOptions(scheme=scheme)
        for factor in factors:
            found[f"{scheme} − {factor}"] = SpaceOptions(scheme=scheme, without=(factor,))
    found["wang2019: 2.207 as c"] = SpaceOptions(scheme="wang2019", factors=("length=gauss-c",))
    return found


def compute(workspace: Workspace) -> list[TaskScore]:
    """Return the scores of each space at k = 3 and the best k ≤ 7."""
    options = spaces()
    return [
        row
        for system in tracked(schemes(workspace, options), "factors", len(options))
        for row in judge(workspace, system)
    ]
