"""Every benchmark runs with its smallest size: it ends well and prints what its documents quote."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinsieve_crawler.demo.articles import load_articles
from twinsieve_crawler.demo.site import build_site

ROOT = Path(__file__).parents[1]
HANG_S = 1800

NAMES = ("collections", "docs", "evaluation", "folder", "html", "pages", "parquet", "store")
"""The fixtures that arguments may name."""

RUNS = [
    ("crawl", "{html} --processes 1", "loop_lag_ms"),
    ("datatrove", "{parquet}", "twinsieve"),
    ("filter_memory", "--pages 3000", "bytes a page"),
    ("groups", "{evaluation}", "inverse purity"),
    ("index", "--sizes 5000 --peer-sizes 5000 --seconds .1", "query + insert/s"),
    ("inputs", "same {pages} --interruptions 0", "HTML as folder, S3: 0 differ"),
    ("inputs", "read --pages 500", "MB at most"),
    ("kafka", "--repeats 1 --text 400 --html 40 --seconds 1", "publish → verdict"),
    ("language_short", "--count 6", "merged, 160"),
    ("languages", "--language en", "balanced P"),
    ("memory", "--pages 20000 --frozen 3", "all bounds held"),
    ("quality.fit", "{evaluation}", "bias = "),
    ("quality", "{evaluation} --only orders --processes 1 --cache {folder}/cache --docs {docs}", "orders"),
    ("restart", "{store} --pages 2000 --more 1000 --kills 1", "0 wrong verdicts"),
    ("restore", "--entries 40000", "40,000 records, verified"),
    ("shards", "equal --pages 1000 --shards 2", "0 differ"),
    ("shards", "speed --entries 5000 --pages 1000 --shards 2", '"verdicts that differ": 0'),
    ("shards", "kafka --pages 600 --shards 2", "log to outcome"),
    ("soak", "--folder {folder} --pages 5000 --minutes .1 --interval-s 1", "0 wrong"),
    ("store", "--folder {folder} --pages 2000", "wrong verdicts"),
    ("verdict", "--count 5120 --peers", "balanced"),
    ("verdict", "--html --count 200 --peers", "balanced"),
    ("yardsticks", "{collections} --docs {docs}", "**balanced** | 1.000 / 1.000 / 1.000 | 0 | 1.000 / 1.000 / 1.000"),
]


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder."""
    return tmp_path


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Eight pages of JSON lines: four articles, and the same again at other addresses."""
    stories = [story for story in load_articles().values() if story.lang.startswith("zh")][:4] * 2
    rows = [
        {"id": f"p{n}", "url": f"https://a.example/{n}", "title": "", "text": "\n".join(one.paragraphs), "lang": "zh"}
        for n, one in enumerate(stories)
    ]
    return write(tmp_path / "pages.jsonl", rows)


@pytest.fixture
def parquet(pages: Path) -> Path:
    """The pages as Parquet."""
    path = pages.with_suffix(".parquet")
    pq.write_table(pa.Table.from_pylist(read(pages)), path)
    return path


@pytest.fixture
def html(tmp_path: Path) -> Path:
    """The HTML pages of the demo site."""
    files = [page.bodies[0] for page in build_site().values() if "html" in page.content_type]
    (tmp_path / "html").mkdir()
    for number, file in enumerate(files):
        (tmp_path / "html" / f"{number}.html").write_bytes(file)
    return tmp_path / "html"


@pytest.fixture
def collections(pages: Path) -> Path:
    """A folder with the pages in the forms of CORE, NEWS-COPY, Reuters-21578 and 20 Newsgroups."""
    rows, target = read(pages), pages.with_name("collections")
    papers = [
        {
            "core_id": row["id"],
            "original_title": row["title"],
            "original_abstract": row["text"],
            "labelled_duplicates": [f"p{(number + 4) % 8}"],
        }
        for number, row in enumerate(rows)
    ]
    write(target / "core.jsonl", papers)
    write(target / "news-copy/articles.json", [{row["id"]: {"byline": "", "article": row["text"]} for row in rows}])
    (target / "news-copy/edges.json").write_text(json.dumps([[f"p{n}", f"p{n + 4}"] for n in range(4)]))
    one, other = (" ".join(f"word{n} of {name}" for n in range(200)) for name in ("one", "other"))
    stories = {"10077": one, "10126": one, "10147": one, "15025": other}  # labelled dup, and not
    (target / "reuters21578").mkdir()
    (target / "reuters21578/reut2-000.sgm").write_text(
        "".join(
            f'<REUTERS TOPICS="NO" NEWID="{name}">\n<TEXT><TITLE>A &lt;B></TITLE>'
            f"<BODY>{text}\n Reuter\n&#3;</BODY></TEXT>\n</REUTERS>\n"
            for name, text in stories.items()
        )
    )
    for name in ("alt.atheism/53369", "talk.religion.misc/83780"):  # labelled dup
        (target / "20_newsgroups" / name).parent.mkdir(parents=True)
        (target / "20_newsgroups" / name).write_text(f"From: a\nSubject: b\n\n{one}")
    return target


@pytest.fixture
def evaluation(pages: Path) -> Path:
    """The pages in the form of the evaluation data, with truth, pairs and HTML."""
    rows = read(pages)
    target = pages.with_name("evaluation")
    original = {"duplicate_of": None, "operator": "unrelated", "strength": None}
    copies = [{"duplicate_of": f"p{n}", "operator": "source_line", "strength": "S1"} for n in range(4)]
    truth = [{"id": f"p{n}", "group": f"g{n % 4}", **row} for n, row in enumerate([*[original] * 4, *copies])]
    pairs = [
        {"a": f"p{a}", "b": f"p{b}", "label": "dup" if b == a + 4 else "not", "kind": kind}
        for (a, b), kind in zip(product(range(4), range(4, 8)), ["nat_D", "nat_N", "nat_R", "neg_law"] * 4, strict=True)
    ]
    write(target / "stream/pages.jsonl", rows)
    write(target / "stream/truth.jsonl", truth)
    for task in ("pairs", "html", "natural", "reposts/text", "reposts/html", "english"):
        write(target / task / "pages.jsonl", rows)
        write(target / task / "pairs.jsonl", pairs)
    for stream in ("laws", "fomc"):
        write(target / f"english/streams/{stream}.jsonl", rows)
    write(target / "html/html.jsonl", [{**row, "html_path": f"{row['id']}.html"} for row in rows])
    write(target / "html/reference_text.jsonl", rows)
    for number, row in enumerate(rows):
        frame = f"<p>{'Menu, weather, contact, imprint. ' * (number // 4)}</p>"
        body = f"<html lang=zh><head><title>新闻</title></head><body><article><p>{row['text']}</p>{frame}</article>"
        (target / "html" / f"{row['id']}.html").write_text(body, encoding="utf-8")
    return target


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A copy of the page that `quality` writes."""
    (tmp_path / "docs" / "images").mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "quality.md", tmp_path / "docs")
    return tmp_path / "docs"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store that `benchmarks.store` left."""
    left = tmp_path / "left"
    run("store", "--folder", str(tmp_path), "--leave-in", str(left), "--pages", "2000")
    return left


def run(name: str, *arguments: str) -> str:
    """Run a benchmark and return what it printed."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize(("name", "arguments", "printed"), RUNS, ids=[f"{name} {given}" for name, given, _ in RUNS])
def test_smallest_size(name: str, arguments: str, printed: str, request: pytest.FixtureRequest) -> None:
    """The benchmark ends with 0, and prints its figure."""
    given = [
        argument.format_map({key: request.getfixturevalue(key) for key in NAMES if f"{{{key}}}" in argument})
        for argument in arguments.split()
    ]
    assert printed in run(name, *given)
