"""Figures of assembled crawls: copies are found, the work is counted, and a part on request waits for it."""

import json

import numpy as np
import pytest

from benchmarks.quality.assembled import Crawl
from benchmarks.quality.corpora import Corpora
from benchmarks.quality.parts import PARTS
from benchmarks.quality.scale import AGES, PLACES, CrawlPreparer, ScaleRow, Work, of_crawl
from benchmarks.quality.scale_tables import copies_table, work_table
from benchmarks.quality.store import Store
from benchmarks.quality.workspace import Workspace
from dedup_service.core.evaluation.scoring import Share
from dedup_service.core.rules.profiles import PROFILES
from tests.benchmarks.quality.test_assembled import pages


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A workspace whose stream has 400 made pages, all unrelated."""
    folder = tmp_path_factory.mktemp("scale")
    (folder / "stream").mkdir()
    rows = [{"id": page.id, "url": page.url, "title": page.title, "text": page.text, "lang": "zh"} for page in pages()]
    truth = [{"id": row["id"], "group": row["id"], "duplicate_of": None, "operator": "unrelated"} for row in rows]
    for name, lines in (("pages", rows), ("truth", truth)):
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder / "stream" / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return Workspace(Corpora(folder), Store(folder / "cache"), processes=1)


@pytest.mark.slow
def test_copies_are_found_where_there_is_no_template(workspace):
    """Nearly all edited copies are found at every age, no page is merged, and distance alone finds fewer copies."""
    with CrawlPreparer(workspace) as preparer:
        row, other = (of_crawl(preparer, Crawl(0.0), 300, PROFILES[name]) for name in ("balanced", "simhash"))
    assert row.merged == Share(0, 300)
    assert set(row.found) == {(age, where) for age in AGES for where in PLACES}
    assert all(share.hits >= 95 for share in row.found.values()), row.found
    assert sum(share.hits for share in other.found.values()) < sum(share.hits for share in row.found.values())
    assert len(row.work.candidates) == len(row.work.read) == 30


def test_tables_show_ages_and_the_spread_of_work():
    """Copies are by place, with the ages side by side; work has p50, p99, most and mean."""
    found = {(age, where): Share(90 + place, 100) for place, age in enumerate(AGES) for where in PLACES}
    work = Work(np.array([0, 0, 4, 8]), np.array([0, 0, 0, 2]))
    row = ScaleRow(Crawl(0.3), 1_000, found, Share(3, 1_000), 1, work, 1.0)
    cells = " | ".join(["90 / 91 / 92"] * 3)
    assert copies_table([row]).splitlines()[-1] == f"| one site | 0.3 | 1,000 | {cells} | 3 (0.30%) | 1 |"
    assert work_table([row]).splitlines()[-1] == "| one site | 0.3 | 1,000 | 2 / 8 / 8 / 3.00 | 0 / 2 / 2 / 0.50 |"


def test_a_million_pages_are_measured_on_request():
    """Every other part is measured unless --only omits it."""
    assert [name for name, part in PARTS.items() if part.on_request] == ["million"]
