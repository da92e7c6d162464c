"""Our own verdicts on every task, by profile: the decisions of `twinsieve filter` and `pairs`, page by page."""

from dataclasses import dataclass
from functools import partial

from benchmarks.quality.systems import TaskScore
from benchmarks.quality.work import mapped, tracked
from benchmarks.quality.world import Workspace
from dedup_service.core.decision.decider import Decider
from dedup_service.core.evaluation.scoring import Share, half_of, score_pairs, score_stream
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.interfaces.cli.commands.pairs import Comparer, NoNames

__all__ = ["FLAGS", "Profiles", "compute", "verdicts"]

FLAGS = frozenset({VerdictKind.DUPLICATE, VerdictKind.UNCHANGED, VerdictKind.UPDATED})


@dataclass(frozen=True, slots=True)
class Profiles:
    """rows: of each profile on each task. pieces: by profile, flags on a piece of another page, and all flags.

    recrawls: of half 1, by profile and operator, verdicts as they should be.
    """

    rows: list[TaskScore]
    pieces: dict[str, tuple[Share, Share]]
    recrawls: dict[str, dict[str, Share]]


def compute(world: Workspace) -> Profiles:
    """Return what every profile reaches, profiles beside each other where there are processes."""
    for task in ("stream", "pieces", "pairs", "html"):
        world.prepared(task)
    found = mapped(partial(_of_profile, world.bare()), list(PROFILES), "profiles", world.processes, chunk=1)
    rows = [row for part in found for row in part.rows]
    pieces = {name: shares for part in found for name, shares in part.pieces.items()}
    return Profiles(rows, pieces, {name: shares for part in found for name, shares in part.recrawls.items()})


def _of_profile(world: Workspace, name: str) -> Profiles:
    rule = PROFILES[name]
    said = verdicts(world.prepared("stream"), rule, f"{name}: stream")
    named = {v.id: v.duplicate_of for v in said if v.kind in FLAGS and v.duplicate_of is not None}
    first, second = (score_stream(world.corpora.truth, named, half=half) for half in (0, 1))
    rows = [TaskScore(name, "stream", 0.0, "", True, (first, second))]
    rows += [_pairs(world, name, rule, task) for task in ("pairs", "html")]
    pieces = _pieces(verdicts(world.prepared("pieces"), rule, f"{name}: pieces"))
    return Profiles(rows, {name: pieces}, {name: _recrawls(world, said)})


class _Names:
    """Ids of the pages by sequence: all that a decision asks of a journal."""

    def __init__(self, pages: list[PreparedPage]) -> None:
        self._pages = pages

    def name(self, sequence: int) -> tuple[str, str]:
        page = self._pages[sequence - 1].page
        return page.id, page.url


def verdicts(pages: list[PreparedPage], rule: MatchRule, label: str) -> list[Verdict]:
    """Return the verdicts on pages in their order."""
    decider = Decider(rule, "benchmark", _Names(pages))
    shown = tracked(enumerate(pages, 1), label, len(pages))
    return [decider.decide(sequence, page).verdict for sequence, page in shown]


def _pairs(world: Workspace, name: str, rule: MatchRule, task: str) -> TaskScore:
    comparer = Comparer(Decider(rule, "benchmark", NoNames()))
    pages = {item.page.id: item for item in world.prepared(task)}
    pairs = world.corpora.pairs if task == "pairs" else world.corpora.html_pairs
    said = {
        (pair.a, pair.b): VerdictKind(comparer.compare(pages[pair.a], pages[pair.b])["verdict"]) in FLAGS
        for pair in pairs
    }
    first, second = (score_pairs(pairs, said, half=half) for half in (0, 1))
    return TaskScore(name, task, 0.0, "", True, (first, second))


def _pieces(said: list[Verdict]) -> tuple[Share, Share]:
    """Return the flags that name a piece of another page, and all flags; an id is the page's, a dot, a place."""
    flags = [(v.id, v.duplicate_of) for v in said if v.kind in FLAGS and v.duplicate_of is not None]
    foreign = sum(one.split(".")[0] != other.split(".")[0] for one, other in flags)
    return Share(foreign, len(said)), Share(len(flags), len(said))


def _recrawls(world: Workspace, said: list[Verdict]) -> dict[str, Share]:
    wanted = {"recrawl_unchanged": VerdictKind.UNCHANGED, "recrawl_updated": VerdictKind.UPDATED}
    kinds = {verdict.id: verdict.kind for verdict in said}
    found: dict[str, list[int]] = {name: [0, 0] for name in wanted}
    for row in world.corpora.truth:
        for name in wanted.keys() & set(row.strata):
            if half_of(row.group) == 1:
                found[name][0] += kinds[row.id] is wanted[name]
                found[name][1] += 1
    return {name: Share(*counts) for name, counts in found.items()}
