"""The tables of docs/quality.md, each from the results of the parts that it needs.

All figures are of half 1 unless the table says otherwise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.quality import factors
from benchmarks.quality.corpora import LABELLED
from benchmarks.quality.numbers import counted, figure, fraction, interval, shares_of, table, with_intervals
from benchmarks.quality.profiles import Profiles
from benchmarks.quality.scale_tables import copies_table, stream_table, work_table
from benchmarks.quality.short_texts import FORMS, ShortTextScore
from benchmarks.quality.systems import TaskScore
from dedup_service.core.evaluation.share import Share

STRENGTHS = ("strength S1", "strength S2", "strength S3")
KINDS = ("unrelated", "hardneg_topic", "hardneg_xwlb", "hardneg_law", "hardneg_list")
DROPS = "false drops per 10,000: unrelated / topic / daily news / laws / lists"
NATURAL = ("kind nat_D", "kind nat_N", "kind nat_R")
BETWEEN = "kind nat_P"
MISSING = "–"
COMPARED_ON_NATURAL = (
    "exact 5-gram Jaccard, every pair",
    "datasketch MinHash LSH 0.5",
    "datasketch MinHash LSH 0.5 + exact Jaccard",
    "datasketch MinHash LSH 0.7",
    "datasketch MinHash LSH 0.7 + exact Jaccard",
    "PyPI simhash (4-grams)",
)
Results = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """A table. needs: the parts whose results it shows; make: returns it as Markdown."""

    needs: tuple[str, ...]
    make: Callable[[Results], str]


def _summary(results: Results) -> str:
    """Return every system at its best threshold, on every task."""
    ours: list[TaskScore] = results["profiles"].rows
    others: list[TaskScore] = [row for row in results["baselines"] if row.best]
    rows = [
        [name if judged is others else f"**{name}**", *_on_tasks([row for row in judged if row.system == name])]
        for judged in (ours, others)
        for name in dict.fromkeys(row.system for row in judged)
    ]
    return table(["", "stream: P", "R", "F1", *(f"{task}: P / R / F1" for task in LABELLED)], rows)


def _on_tasks(rows: Sequence[TaskScore]) -> list[str]:
    by_task = {row.task: row.by_half[1] for row in rows}
    stream = by_task["stream"]
    cells = [figure(stream.precision), figure(stream.recall), figure(stream.f1)]
    for task in LABELLED:
        found = by_task.get(task)
        cells.append(" / ".join(map(figure, (found.precision, found.recall, found.f1))) if found else MISSING)
    return cells


def _profiles(results: Results) -> str:
    ours: Profiles = results["profiles"]
    rows = []
    for row in ours.rows:
        if row.task == "stream":
            for half in (1, 0):
                found = row.by_half[half]
                drops = " / ".join(counted(found.drops_by.get(kind)) for kind in KINDS)
                cells = with_intervals(found)
                rows.append(
                    [f"**{row.system}**" if half else row.system, half, *cells, shares_of(found, STRENGTHS), drops]
                )
    return table(
        [
            "profile",
            "half",
            "P",
            "R",
            "F1",
            "S1 / S2 / S3",
            "false drops: unrelated / topic / daily news / laws / lists",
        ],
        rows,
    )


def _pieces(results: Results) -> str:
    ours: Profiles = results["profiles"]
    rows = []
    for name, (foreign, flags) in ours.pieces.items():
        again = ours.recrawls[name]
        cells = [
            counted(foreign),
            counted(flags),
            counted(again["recrawl_unchanged"]),
            counted(again["recrawl_updated"]),
        ]
        rows.append([name, *cells])
    return table(["profile", "pieces flagged as another page's", "flags in all", "`unchanged`", "`updated`"], rows)


def _operators(results: Results) -> str:
    found = _ours(results, "balanced", "stream").by_half[1]
    rows: list[Sequence[object]] = []
    for name, share in found.recall_by.items():
        if name.startswith("operator "):
            rows.append([name.removeprefix("operator "), counted(share), fraction(share)])
    for name, share in found.others_by.items():
        if name.startswith("strength "):
            rows.append([f"{name.removeprefix('strength ')}, not scored", counted(share), fraction(share)])
    return table(["what was done", "found", ""], rows)


def _strata(task: str) -> Callable[[Results], str]:
    def make(results: Results) -> str:
        columns = {
            "balanced": _ours(results, "balanced", task),
            "exact Jaccard ≥ .65": _other(results, "exact 5-gram Jaccard, every pair", task, 0.65),
            "PyPI simhash, best": _best(results, "PyPI simhash (4-grams)", task),
        }
        found = {name: row.by_half[1] for name, row in columns.items()}
        first = found["balanced"]
        rows = []
        for what, shares in (("copies found", "recall_by"), ("others flagged", "drops_by"), ("between", "others_by")):
            for stratum in getattr(first, shares):
                if stratum.startswith("kind "):
                    cells = [counted(getattr(evaluation, shares).get(stratum)) for evaluation in found.values()]
                    rows.append([what, stratum.removeprefix("kind "), *cells])
        for what, values in (("precision", "precision"), ("recall", "recall"), ("F1", "f1")):
            rows.append([what, "all", *(figure(getattr(evaluation, values)) for evaluation in found.values())])
        if task == "pairs":
            for number, what in enumerate(("precision", "recall", "F1")):
                rows.append([what, "natural Chinese", *(_natural(evaluation)[number] for evaluation in found.values())])
        return table(["", "kind", *found], rows)

    return make


def _natural_pairs(results: Results) -> str:
    """Return every profile and the closest of the compared systems on the natural pairs, by kind."""
    ours: list[TaskScore] = [row for row in results["profiles"].rows if row.task == "natural"]
    others: list[TaskScore] = [row for row in results["baselines"] if row.task == "natural" and row.best]
    rows = []
    for row in [*ours, *(row for name in COMPARED_ON_NATURAL for row in others if row.system == name)]:
        found = row.by_half[1]
        cells = [figure(found.precision), figure(found.recall), f"{figure(found.f1)} {interval(found.intervals()[2])}"]
        cells.append(counted(found.recall_by.get("kind nat_D")))
        cells += [counted(found.drops_by.get(f"kind {kind}")) for kind in ("nat_N", "nat_R")]
        cells += [counted(found.others_by.get(BETWEEN)), counted(_of_both(row, BETWEEN))]
        rows.append([row.system if row.setting else f"**{row.system}**", row.setting, *cells])
    if not rows:
        return "The natural pairs (`natural/`) were missing when this page was made."
    kinds = ("`nat_D` found", "`nat_N` flagged", "`nat_R` flagged", "`nat_P` flagged", "`nat_P`, both halves")
    return table(["", "at", "P", "R", "F1", *kinds], rows)


def _of_both(row: TaskScore, stratum: str) -> Share | None:
    """Return the share of flagged grey pairs of a stratum over both halves."""
    shares = [found.others_by[stratum] for found in row.by_half if stratum in found.others_by]
    return Share(sum(share.hits for share in shares), sum(share.total for share in shares)) if shares else None


def _natural(evaluation: Any) -> tuple[str, str, str]:
    """Return P, R and F1 over the natural Chinese pairs: reposts against other events and reports."""
    right = evaluation.recall_by[NATURAL[0]]
    wrong = sum(evaluation.drops_by[name].hits for name in NATURAL[1:] if name in evaluation.drops_by)
    precision = right.hits / (right.hits + wrong) if right.hits + wrong else float("nan")
    f1 = 2 * right.hits / (right.hits + right.total + wrong)
    return figure(precision), figure(right.value), figure(f1)


def _baselines(task: str) -> Callable[[Results], str]:
    def make(results: Results) -> str:
        rows = []
        ours: Profiles = results["profiles"]
        judged: list[TaskScore] = [*ours.rows, *results["baselines"]]
        for row in judged:
            if row.task != task:
                continue
            found = row.by_half[1]
            name = row.system if row.setting else f"**{row.system}**"
            setting = f"{row.setting} (best)" if row.best and len(_settings(judged, row)) > 1 else row.setting
            cells = [name, setting, *map(figure, (found.precision, found.recall, found.f1))]
            if task == "stream":
                cells += [shares_of(found, STRENGTHS), shares_of(found, KINDS, per_10_000=True)]
            elif task == "pairs":
                cells.append(" / ".join(_natural(found)))
            rows.append(cells)
        further = {"stream": ["S1 / S2 / S3", DROPS], "pairs": ["natural Chinese: P / R / F1"], "html": []}[task]
        return table(["system", "at", "P", "R", "F1", *further], rows)

    return make


def _settings(rows: Sequence[TaskScore], row: TaskScore) -> set[str]:
    return {other.setting for other in rows if (other.system, other.task) == (row.system, row.task)}


def _orders(results: Results) -> str:
    rows = [[name, f"{pairs:,}", differing] for name, (pairs, differing) in results["orders"].items()]
    return table(["pairs", "", "another verdict in the other order"], rows)


def _short(results: Results) -> str:
    found: list[ShortTextScore] = results["short"]
    rows = []
    for operator in dict.fromkeys(row.operator for row in found):
        mine = [row for row in found if row.operator == operator]
        wanted = "≥ .95" if mine[0].harmless else "0"
        cells = []
        for half in (1, 0):
            cells += [
                counted(next(row.share for row in mine if (row.form, row.half) == (form, half))) for form in FORMS
            ]
        rows.append([operator, wanted, *cells])
    headings = [f"{form}, half {half}" for half in (1, 0) for form in FORMS]
    return table(["changed", "wanted", *headings], rows)


def _factors(results: Results, names: Sequence[str]) -> str:
    rows = []
    for row in results["factors"]:
        if row.system in names and row.task == "stream":
            found = row.by_half[1]
            cells = map(figure, (found.precision, found.recall, found.f1))
            drops = shares_of(found, KINDS, per_10_000=True)
            rows.append([row.system, row.setting, *cells, shares_of(found, STRENGTHS), drops])
    return table(["words", "at", "P", "R", "F1", "S1 / S2 / S3", DROPS], rows)


def _ladder(results: Results) -> str:
    return _factors(results, [f"zhang2020: {step}" for step in factors.LADDER])


def _removed(results: Results) -> str:
    names = [f"zhang2020: {step}" for step in factors.LADDER]
    return _factors(results, [row.system for row in results["factors"] if row.system not in names])


def _metadata(results: Results) -> str:
    """Return the published distance with and without metadata, on the pages that state some."""
    rows = []
    for row in results["baselines"]:
        if row.task == "html" and row.system.startswith("wang2019"):
            found = row.by_half[1]
            rows.append([row.system, row.setting, *map(figure, (found.precision, found.recall, found.f1))])
    return table(["html pages", "at", "P", "R", "F1"], rows)


def _ours(results: Results, name: str, task: str) -> TaskScore:
    rows: list[TaskScore] = results["profiles"].rows
    return next(row for row in rows if (row.system, row.task) == (name, task))


def _other(results: Results, name: str, task: str, threshold: float) -> TaskScore:
    wanted = (name, task, threshold)
    rows: list[TaskScore] = results["baselines"]
    return next(row for row in rows if (row.system, row.task, row.threshold) == wanted)


def _best(results: Results, name: str, task: str) -> TaskScore:
    rows: list[TaskScore] = results["baselines"]
    return next(row for row in rows if (row.system, row.task) == (name, task) and row.best)


BOTH = ("profiles", "baselines")
TABLES = {
    "summary": Table(BOTH, _summary),
    "profiles": Table(("profiles",), _profiles),
    "pieces": Table(("profiles",), _pieces),
    "operators": Table(("profiles",), _operators),
    "pairs": Table(BOTH, _strata("pairs")),
    "html": Table(BOTH, _strata("html")),
    "natural": Table(BOTH, _natural_pairs),
    "baselines-stream": Table(BOTH, _baselines("stream")),
    "baselines-pairs": Table(BOTH, _baselines("pairs")),
    "baselines-html": Table(BOTH, _baselines("html")),
    "orders": Table(("orders",), _orders),
    "short": Table(("short",), _short),
    "ladder": Table(("factors",), _ladder),
    "removed": Table(("factors",), _removed),
    "metadata": Table(("baselines",), _metadata),
    "scale": Table(("scale",), lambda results: copies_table(results["scale"])),
    "scale-work": Table(("scale",), lambda results: work_table(results["scale"])),
    "scale-stream": Table(("scale",), lambda results: stream_table(results["scale"])),
}
