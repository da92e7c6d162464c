"""Plot a calibration: precision over recall, and a histogram of duplicates and others for each channel.

The files have no date and need no display, so the same calibration gives the same files. Needs the extra
`plots`.
Colours: Okabe and Ito's palette, which colour-blind readers can tell apart.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dedup_service.core.evaluation.calibration import Calibration, Curve
from dedup_service.interfaces.cli.calibration.measured_pairs import BODY, JACCARD, RULE, WORDS

COLOURS = {WORDS.name: "#0072B2", BODY.name: "#56B4E9", JACCARD.name: "#009E73", RULE: "#D55E00"}
AXIS_LABELS = {
    WORDS.name: "words: distance in bits, at most",
    BODY.name: "body: distance in bits, at most",
    JACCARD.name: "estimated Jaccard similarity, at least",
    RULE: "rule: offset added to a bound of its rows",
}
DUPLICATES, OTHERS, GREY = "#0072B2", "#D55E00", "#777777"

STYLE: Any = {"svg.hashsalt": "twinsieve", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}


def draw_calibration(calibration: Calibration, folder: Path) -> None:
    """Write precision_recall and distances into `folder`, each as .png and .svg."""
    with mpl.rc_context(STYLE):
        _save(_precision_recall(calibration), folder / "precision_recall")
        _save(_distances(calibration), folder / "distances")


def _save(figure: Figure, path: Path) -> None:
    FigureCanvasAgg(figure)
    figure.savefig(path.with_suffix(".png"), dpi=150, metadata={"Software": None})
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None, "Creator": None})


def _precision_recall(calibration: Calibration) -> Figure:
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    whole, top = figure.subplots(1, 2)
    for axes in (whole, top):
        for curve in calibration.curves:
            _draw_curve(axes, calibration, curve)
        axes.axhline(calibration.precision, color=GREY, linewidth=0.8, linestyle=":")
        axes.set_xlabel("recall")
        axes.set_xlim(0, 1.005)
    whole.set_ylabel("precision")
    whole.set_ylim(0, 1.01)
    top.set_ylim(1 - 2 * max(1 - calibration.precision, 0.02), 1.002)
    duplicates, others, _ = calibration.counts
    whole.set_title(f"{duplicates} duplicates, {others} others", loc="left")
    top.set_title(f"upper part; dotted: the requested {calibration.precision:g}", loc="left")
    whole.legend(frameon=False, loc="lower left")
    return figure


def _draw_curve(axes: Axes, calibration: Calibration, curve: Curve) -> None:
    name = curve.channel.name
    points = [point for point in curve.points if point.right + point.wrong]
    recalls, precisions = [point.recall.value for point in points], [point.precision.value for point in points]
    axes.plot(recalls, precisions, color=COLOURS[name], linewidth=1.4, label=name)
    chosen = calibration.chosen(name)
    if chosen is not None:
        axes.plot(chosen.recall.value, chosen.precision.value, "o", color=COLOURS[name], markersize=5)


def _distances(calibration: Calibration) -> Figure:
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    for axes, curve in zip(figure.subplots(2, 2).flat, calibration.curves, strict=True):
        _draw_histogram(axes, calibration, curve)
    figure.axes[0].legend(frameon=False)
    return figure


def _draw_histogram(axes: Axes, calibration: Calibration, curve: Curve) -> None:
    """Draw shares of each kind rather than counts, so that few duplicates are visible beside many others."""
    thresholds = curve.channel.thresholds
    half = (thresholds[1] - thresholds[0]) / 2
    edges = [thresholds[0] - half, *(threshold + half for threshold in thresholds)]
    for name, counts, colour, alpha in (
        ("duplicates", curve.duplicates, DUPLICATES, 0.6),
        ("others", curve.others, OTHERS, 0.6),
        ("grey", curve.grey, GREY, None),
    ):
        total = sum(counts)
        if total:
            shares = [count / total for count in counts[:-1]]
            filled = alpha is not None
            axes.stairs(shares, edges, fill=filled, color=colour, alpha=alpha, label=f"{name} ({total})")
    chosen = calibration.chosen(curve.channel.name)
    if chosen is not None:
        axes.axvline(chosen.threshold, color="black", linewidth=0.9, linestyle="--")
    if curve.channel.at_least:
        axes.invert_xaxis()
    beyond = f"not flagged at any threshold: {curve.duplicates[-1]} duplicates, {curve.others[-1]} others"
    axes.set_title(beyond, loc="right", fontsize=8, color=GREY)
    axes.set_xlabel(AXIS_LABELS[curve.channel.name])
    axes.set_ylabel("share of the pairs")
