"""What each factor of the published weights does: added one after the other, and each taken out alone.

The papers do not report it. The ladder is that of the seeds, over relative tf·idf: word length, part of speech, marker
words, title. All in the `words` channel, by distance alone, since no paper had another. Metadata say nothing in the
stream, whose pages state none; what they do is measured on the pages in HTML (`baselines`).
"""

from benchmarks.quality.baselines import schemes
from benchmarks.quality.systems import TaskScore, judge
from benchmarks.quality.work import tracked
from benchmarks.quality.world import Workspace
from dedup_service.runtime.resources import SpaceOptions

__all__ = ["LADDER", "REMOVED", "compute"]

LADDER = {
    "tf·idf": ("pos", "length", "marker", "title"),
    "+ length": ("pos", "marker", "title"),
    "+ part of speech": ("marker", "title"),
    "+ marker": ("title",),
    "+ title": (),
}
"""Steps, by the factors of zhang2020 that are still off."""

REMOVED = {
    "zhang2020": ("idf", "length", "pos", "marker", "title"),
    "wang2019": ("idf", "length"),
    "twinsieve": ("idf", "marker", "title"),
}


def spaces() -> dict[str, SpaceOptions]:
    """Return the spaces to measure by label, each once."""
    found = {f"zhang2020: {step}": SpaceOptions(scheme="zhang2020", without=off) for step, off in LADDER.items()}
    for scheme, factors in REMOVED.items():
        found[scheme] = SpaceOptions(scheme=scheme)
        for factor in factors:
            found[f"{scheme} − {factor}"] = SpaceOptions(scheme=scheme, without=(factor,))
    found["wang2019: 2.207 as c"] = SpaceOptions(scheme="wang2019", factors=("length=gauss-c",))
    return found


def compute(world: Workspace) -> list[TaskScore]:
    """Return the rows of each space at k = 3 and the best k ≤ 7."""
    options = spaces()
    return [row for system in tracked(schemes(world, options), "factors", len(options)) for row in judge(world, system)]
