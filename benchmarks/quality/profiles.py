"""Verdicts of every profile on every task, as `twinsieve filter` and `twinsieve pairs` decide them."""

from dataclasses import dataclass
from functools import partial

from benchmarks.prepared_names import PreparedNames
from benchmarks.quality.systems import TaskScore
from benchmarks.quality.work import mapped, tracked
from benchmarks.quality.workspace import Workspace
from dedup_service.core.decision.decider import Decider
from dedup_service.core.evaluation.scoring import half_of, score_pairs, score_stream
from dedup_service.core.evaluation.share import Share
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.interfaces.cli.commands.pairs import Comparer

FLAGS = frozenset({VerdictKind.DUPLICATE, VerdictKind.UNCHANGED, VerdictKind.UPDATED})


@dataclass(frozen=True, slots=True)
class Profiles:
    """Figures of all profiles.

    rows: scores of each profile on each task. pieces: by profile, flags that name a piece of another page,
    and all flags. recrawls: of half 1, by profile and operator, the share of right verdicts.
    """

    rows: list[TaskScore]
    pieces: dict[str, tuple[Share, Share]]
    recrawls: dict[str, dict[str, Share]]


def compute(workspace: Workspace) -> Profiles:
    """Return the figures of every profile; profiles run in parallel if there are several processes."""
    for task in ("pieces", *workspace.corpora.tasks):
        workspace.prepared(task)
    found = mapped(partial(_of_profile, workspace.bare()), list(PROFILES), "profiles", workspace.processes, chunk=1)
    rows = [row for part in found for row in part.rows]
    pieces = {name: shares for part in found for name, shares in part.pieces.items()}
    return Profiles(rows, pieces, {name: shares for part in found for name, shares in part.recrawls.items()})


def _of_profile(workspace: Workspace, name: str) -> Profiles:
    rule = PROFILES[name]
    decided = verdicts(workspace.prepared("stream"), rule, f"{name}: stream")
    named = {v.id: v.duplicate_of for v in decided if v.kind in FLAGS and v.duplicate_of is not None}
    first, second = (score_stream(workspace.corpora.truth, named, half=half) for half in (0, 1))
    rows = [TaskScore(name, "stream", 0.0, "", True, (first, second))]
    rows += [_pairs(workspace, name, rule, task) for task in workspace.corpora.labelled]
    pieces = _pieces(verdicts(workspace.prepared("pieces"), rule, f"{name}: pieces"))
    return Profiles(rows, {name: pieces}, {name: _recrawls(workspace, decided)})


def verdicts(pages: list[PreparedPage], rule: MatchRule, label: str) -> list[Verdict]:
    """Return the verdicts on pages in their order."""
    decider = Decider(rule, "benchmark", PreparedNames(pages))
    shown = tracked(enumerate(pages, 1), label, len(pages))
    return [decider.decide(sequence, page).verdict for sequence, page in shown]


def _pairs(workspace: Workspace, name: str, rule: MatchRule, task: str) -> TaskScore:
    comparer = Comparer(rule, "benchmark")
    pages = {item.page.id: item for item in workspace.prepared(task)}
    pairs = workspace.corpora.pairs_of(task)
    flagged = {
        (pair.a, pair.b): VerdictKind(comparer.compare(pages[pair.a], pages[pair.b])["verdict"]) in FLAGS
        for pair in pairs
    }
    first, second = (score_pairs(pairs, flagged, half=half) for half in (0, 1))
    return TaskScore(name, task, 0.0, "", True, (first, second))


def _pieces(decided: list[Verdict]) -> tuple[Share, Share]:
    """Return the flags that name a piece of another page, and all flags. A piece's id is `page.number`."""
    flags = [(v.id, v.duplicate_of) for v in decided if v.kind in FLAGS and v.duplicate_of is not None]
    foreign = sum(one.split(".")[0] != other.split(".")[0] for one, other in flags)
    return Share(foreign, len(decided)), Share(len(flags), len(decided))


def _recrawls(workspace: Workspace, decided: list[Verdict]) -> dict[str, Share]:
    expected = {"recrawl_unchanged": VerdictKind.UNCHANGED, "recrawl_updated": VerdictKind.UPDATED}
    kinds = {verdict.id: verdict.kind for verdict in decided}
    found: dict[str, list[int]] = {name: [0, 0] for name in expected}
    for row in workspace.corpora.truth:
        for name in expected.keys() & set(row.strata):
            if half_of(row.group) == 1:
                found[name][0] += kinds[row.id] is expected[name]
                found[name][1] += 1
    return {name: Share(*counts) for name, counts in found.items()}
