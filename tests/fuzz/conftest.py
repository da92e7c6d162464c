"""What every parser needs before its time is measured."""

import os
from pathlib import Path

import pytest

from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.extraction import extract
from dedup_service.core.page import Page
from dedup_service.runtime.resources import build_fingerprinter
from tests.core.hostile import SENTENCE
from tests.fuzz.quantities import QUANTITIES
from tests.fuzz.reporter import REPORT, Reporter

TEXTS = ("", "a", "10² m, 3½", SENTENCE * 9, "图书馆昨日宣布，从下月起延长周末开放时间。" * 9, "도서관 كَتَبَ ห้องสมุด" * 9)


def pytest_configure(config: pytest.Config) -> None:
    if path := os.environ.get(REPORT):
        config.pluginmanager.register(Reporter(Path(path)))


@pytest.fixture(autouse=True, scope="session")
def _warm() -> None:
    """Load what the first examples would wait for."""
    extract(f"<p>{SENTENCE * 9}</p>")
    packed = []
    for text in TEXTS:
        page = Page(url="", canonical_url="", id="", title=text, text=text, keywords=(text,))
        build_fingerprinter().words(page)
        packed.append(Evidence(build_fingerprinter().prepare(page).evidence))
    for one in packed:
        for name in QUANTITIES:
            getattr(Similarity(one, packed[-1]), name)
