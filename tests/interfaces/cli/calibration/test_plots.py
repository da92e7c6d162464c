"""Plots of a calibration."""

from pathlib import Path

import pytest

from dedup_service.core.evaluation.calibration import Calibration, curve_of
from dedup_service.interfaces.cli.calibration.measured_pairs import BODY, JACCARD, RULE, WORDS
from dedup_service.interfaces.cli.calibration.plots import draw_calibration

NAMES = {f"{name}.{ending}" for name in ("distances", "precision_recall") for ending in ("png", "svg")}
LABELS = [True, True, False, False, None]
VALUES = {"words": [0, 5, 9, 30, None], "body": [1, None, 9, 40, 3], "jaccard": [1, 0.8, 0.3, 0, 0.5]}


@pytest.fixture(scope="module")
def found() -> Calibration:
    """A calibration on five pairs; on one channel no threshold reaches the precision."""
    values = {**VALUES, "rule": [0.1, None, 0.4, None, -0.2]}
    return Calibration(0.9, tuple(curve_of(at, values[at.name], LABELS) for at in (WORDS, BODY, JACCARD, RULE)))


@pytest.fixture(scope="module")
def drawn(found: Calibration, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The plots of `found`."""
    return contents(found, tmp_path_factory.mktemp("drawn"))


def contents(found: Calibration, folder: Path) -> dict[str, bytes]:
    """Draw the plots and return the files by name."""
    draw_calibration(found, folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_same_calibration_gives_the_same_files(found: Calibration, drawn: dict[str, bytes], tmp_path: Path) -> None:
    """Byte for byte, so that a changed plot means changed figures."""
    assert contents(found, tmp_path) == drawn
    assert drawn.keys() == NAMES
    assert drawn["distances.png"].startswith(b"\x89PNG")
    assert b"<svg" in drawn["distances.svg"]
