"""The pictures of docs/quality.md, as PNG and SVG, from the same results as its tables; all of half 1."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from benchmarks.quality.scale import AGES, ScaleRow
from benchmarks.quality.systems import TaskScore

mpl.use("Agg")
mpl.rcParams.update(
    {
        "svg.hashsalt": "twinsieve",  # the same picture of the same numbers, byte for byte
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#e6e6e6",
        "axes.axisbelow": True,
        "figure.facecolor": "white",
    }
)

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

Results = Mapping[str, Any]
CORNER = (0.75, 0.965)
"""Recall and precision at which the enlarged corner of the picture of all systems begins."""

OURS, OTHER = "#c0392b", "#7f8c8d"
COMPARED = {
    "PyPI simhash (4-grams)": "#2980b9",
    "TF SimHash (words)": "#16a085",
    "jieba TF-IDF SimHash (top 200)": "#8e44ad",
    "zhang2020, words": "#d68910",
    "sampled Shingle (3 words, 1 of 8)": "#5d6d7e",
    "datasketch MinHash LSH 0.5 + exact Jaccard": "#27ae60",
    "datasketch MinHash LSH 0.7 + exact Jaccard": "#76d7c4",
    "exact 5-gram Jaccard, every pair": "#000000",
}
KINDS = {
    "unrelated": "unrelated",
    "hardneg_topic": "same topic",
    "hardneg_xwlb": "daily news",
    "hardneg_law": "laws",
    "hardneg_list": "lists",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture. needs: the parts whose results it shows; figure: draws it."""

    needs: tuple[str, ...]
    figure: Callable[[Results], Figure]

    def draw(self, results: Results, path: Path) -> None:
        """Write the picture as PNG and SVG. path: without suffix."""
        figure = self.figure(results)
        figure.savefig(path.with_suffix(".png"), dpi=110, metadata={"Software": None})
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None, "Creator": None})
        plt.close(figure)


def _precision_recall(results: Results) -> Figure:
    """Draw every system over its thresholds, profiles as points, and the best corner enlarged."""
    figure, (whole, corner) = plt.subplots(1, 2, figsize=(9.6, 4.6), layout="constrained")
    for axes in (whole, corner):
        for name, colour in COMPARED.items():
            row = _best(results["baselines"], name)
            points = [(r, p) for _, p, r in row.curve if not np.isnan(p)]
            axes.plot(*zip(*points, strict=True), color=colour, linewidth=1, marker=".", markersize=3, label=name)
            found = row.by_half[1]
            axes.plot(found.recall, found.precision, "o", color=colour, markersize=6)
        for row in results["profiles"].rows:
            if row.task == "stream":
                axes.plot(row.by_half[1].recall, row.by_half[1].precision, "*", color=OURS, markersize=13)
        axes.plot([], [], "*", color=OURS, markersize=11, label="twinsieve, by profile")
        axes.set_xlabel("recall")
    for row in results["profiles"].rows:
        place = (row.by_half[1].recall, row.by_half[1].precision)
        if row.task == "stream" and place[0] > CORNER[0] and place[1] > CORNER[1]:
            beside = (-9, 3 if row.system == "balanced" else -10)
            corner.annotate(row.system, place, beside, textcoords="offset points", ha="right", color=OURS)
    whole.set(xlim=(0, 1.01), ylim=(0.5, 1.01), ylabel="precision")
    corner.set(xlim=(CORNER[0], 1.005), ylim=(CORNER[1], 1.002))
    whole.legend(loc="lower left", fontsize=7.5, frameon=False)
    return figure


def _strength(results: Results) -> Figure:
    """Draw recall by how much of a copy was changed."""
    figure, axes = plt.subplots(figsize=(7.6, 3.4), layout="constrained")
    names = {"S1": "up to 5%", "S2": "up to 15%", "S3": "up to 30%"}
    values = {
        label: [row.by_half[1].recall_by[f"strength {name}"].value for name in names]
        for label, row in _shown(results).items()
    }
    _bars(axes, values, list(names.values()))
    axes.set(ylim=(0, 1.02), ylabel="copies found", xlabel="of the text lost or added")
    return figure


def _drops(results: Results) -> Figure:
    """Draw false drops by kind of page."""
    figure, axes = plt.subplots(figsize=(7.6, 3.4), layout="constrained")
    values = {
        label: [1e4 * row.by_half[1].drops_by[kind].value for kind in KINDS] for label, row in _shown(results).items()
    }
    _bars(axes, values, list(KINDS.values()))
    axes.set_yscale("symlog", linthresh=10)
    axes.set(ylim=(0, 1e4), ylabel="false drops per 10,000")
    return figure


def _shown(results: Results) -> dict[str, TaskScore]:
    ours = {row.system: row for row in results["profiles"].rows if row.task == "stream"}
    others: Sequence[TaskScore] = results["baselines"]
    named = {
        "MinHash LSH .5 + exact Jaccard": "datasketch MinHash LSH 0.5 + exact Jaccard",
        "jieba TF-IDF SimHash": "jieba TF-IDF SimHash (top 200)",
        "PyPI simhash": "PyPI simhash (4-grams)",
        "zhang2020": "zhang2020, words",
    }
    found = {"twinsieve, balanced": ours["balanced"], "twinsieve, simhash": ours["simhash"]}
    for label, name in named.items():
        row = _best(others, name)
        found[f"{label}, {row.setting}"] = row
    return found


def _bars(axes: Axes, values: Mapping[str, Sequence[float]], groups: Sequence[str]) -> None:
    colours = [OURS, "#e59866", "#27ae60", "#8e44ad", "#2980b9", "#d68910"]
    width = 0.84 / len(values)
    for number, ((label, heights), colour) in enumerate(zip(values.items(), colours, strict=True)):
        places = np.arange(len(groups)) + (number - (len(values) - 1) / 2) * width
        axes.bar(places, heights, width * 0.92, color=colour, label=label)
    axes.set_xticks(range(len(groups)), groups)
    axes.grid(visible=False, axis="x")
    axes.legend(fontsize=7.5, frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _scale(results: Results) -> Figure:
    """Draw copies found, different pages merged and evidence read by pages kept, a line for each template share."""
    rows: list[ScaleRow] = results["scale"]
    figure, panels = plt.subplots(2, 3, figsize=(9.6, 5.4), layout="constrained", sharex=True)
    for axes, mixed in zip(panels, (False, True), strict=True):
        shares = sorted({row.crawl.share for row in rows})
        for share, colour in zip(shares, ("#2980b9", "#27ae60", "#d68910", OURS), strict=True):
            mine = sorted(
                (row for row in rows if row.crawl.mixed == mixed and row.crawl.share == share), key=lambda row: row.size
            )
            sizes = [row.size for row in mine]
            for panel, values in zip(axes, zip(*map(_panels, mine), strict=True), strict=True):
                panel.plot(sizes, values, marker="o", color=colour, label=f"template {share:g}")
        for panel in axes:
            panel.set(xscale="log")
        axes[0].set(ylim=(0, 102), ylabel=f"{'many hosts' if mixed else 'one site'}: copies found, %")
        axes[1].set_yscale("symlog", linthresh=0.1)
        axes[1].set(ylim=(0, 100), ylabel="different pages merged, %")
        axes[2].set_yscale("symlog", linthresh=1)
        axes[2].set(ylim=(0, 200), ylabel="evidence read a page, mean")
    for panel in panels[1]:
        panel.set_xlabel("pages before")
    panels[0][0].legend(frameon=False, fontsize=7.5, loc="lower left")
    return figure


def _panels(row: ScaleRow) -> tuple[float, float, float]:
    """Return the copies found on the same host, the least of the three ages, pages merged, and evidence read."""
    found = min(row.found[age, "same host"].value for age in AGES)
    return 100 * found, 100 * row.merged.value, float(row.work.read.mean())


def _best(rows: Sequence[TaskScore], name: str) -> TaskScore:
    return next(row for row in rows if (row.system, row.task) == (name, "stream") and row.best)


BOTH = ("profiles", "baselines")
PICTURES = {
    "precision-recall": Picture(BOTH, _precision_recall),
    "strength": Picture(BOTH, _strength),
    "drops": Picture(BOTH, _drops),
    "scale": Picture(("scale",), _scale),
}
