"""How fast a page becomes a fingerprint, and HTML a verdict, against the usual ways.

    python -m benchmarks.fingerprint [--pages FILE] [--html DIR] [--count N]

Text: both channels of `twinsieve` against PyPI `simhash` (its defaults: 4-grams, MD5) and against
jieba.posseg + `simhash` over tagged words, which is how the published schemes are usually built.
HTML: extraction, fingerprint and decision against trafilatura at its defaults + jieba.posseg + `simhash`
and its index. All in one process and one run: the pages are cut into chunks, every way takes each chunk in
turn, and the ratio is that of the summed processor times, so a machine that slows down slows all alike.
Before the clock runs, `twinsieve` takes --warm other pages, as in a stream that has gone on for a while: it remembers
the words it has met. The others remember nothing; they take a few pages, to load their dictionaries.

Data: FILE holds JSON lines of pages (`title`, `text`); Chinese ones are taken. DIR holds *.html. Without
them the pages of the demo site are used.
"""

import argparse
import json
import logging
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import jieba
import jieba.posseg
import simhash
import trafilatura
from rich.console import Console
from rich.table import Table

from crawler.demo.articles import load_articles
from crawler.demo.site import build_site
from dedup_service.core.extraction import extract, to_page
from dedup_service.core.page import Page
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.resources import build_fingerprinter

CHUNK = 100  # of a smaller one each way would mostly measure how it finds the cache that the last one left
Way = Callable[[Any], object]


def with_simhash(page: Page) -> object:
    """PyPI simhash at its defaults."""
    return simhash.Simhash(page.title + "\n" + page.text)


def with_posseg(page: Page) -> simhash.Simhash:
    """jieba.posseg words into PyPI simhash."""
    words = [f"{pair.word}/{pair.flag}" for pair in jieba.posseg.cut(page.title + "\n" + page.text)]
    return simhash.Simhash(words)


class UsualPipeline:
    """trafilatura at its defaults, jieba.posseg, PyPI simhash and its index."""

    def __init__(self) -> None:
        self._index = simhash.SimhashIndex([], k=3)
        self._numbers = count()

    def __call__(self, html: bytes) -> object:
        """Return the near-duplicates found, and add the page."""
        found = trafilatura.bare_extraction(html, with_metadata=True)
        if found is None or not found.text:
            return []
        value = with_posseg(Page(url="", canonical_url="", id="", title=found.title or "", text=found.text))
        near = self._index.get_near_dups(value)
        self._index.add(str(next(self._numbers)), value)
        return near


class OurPipeline:
    """Extraction, both channels and the decision of twinsieve."""

    def __init__(self) -> None:
        self._filter = NearDuplicateFilter.open(None)
        self._numbers = count()

    def __call__(self, html: bytes) -> object:
        """Return the verdict."""
        return self._filter.check(to_page(extract(html), f"https://bench.example/{next(self._numbers)}"))


def race(items: Sequence[Any], ways: dict[str, Way]) -> dict[str, list[float]]:
    """Return the seconds of processor time that each way took per chunk."""
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for start in range(0, len(items), CHUNK):
        chunk = items[start : start + CHUNK]
        for name, way in ways.items():
            began = time.process_time()
            for item in chunk:
                way(item)
            spent[name].append((time.process_time() - began) / len(chunk))
    return spent


def report(title: str, spent: dict[str, list[float]], ours: str, pages: int) -> dict[str, Any]:
    """Print one table and return its figures."""
    table = Table(title=f"{title}: {pages} pages, one core")
    for heading in ("way", "pages/s", "ms a page, median chunk", f"times slower than {ours}"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    figures = {}
    for name, chunks in spent.items():
        ratio = sum(chunks) / sum(spent[ours])
        figures[name] = {"pages_per_s": len(chunks) / sum(chunks), "ratio": ratio}
        table.add_row(
            name, f"{len(chunks) / sum(chunks):,.0f}", f"{statistics.median(chunks) * 1e3:.2f}", f"{ratio:.1f}"
        )
    Console(width=120).print(table)
    return figures


def chinese_pages(path: Path | None, maximum: int) -> list[Page]:
    """Return pages to fingerprint."""
    if path is None:
        rows = [
            {"title": item.title, "text": "\n".join(item.paragraphs), "lang": item.lang}
            for item in load_articles().values()
        ]
    else:
        with path.open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
    chinese = [row for row in rows if str(row.get("lang", "zh")).startswith("zh") and row["text"]]
    return [
        Page(url="", canonical_url="", id=str(n), title=row["title"], text=row["text"])
        for n, row in enumerate(chinese[:maximum])
    ]


def html_pages(folder: Path | None, maximum: int) -> list[bytes]:
    """Return the HTML of real pages, or of the demo site."""
    if folder is None:
        return [page.bodies[0] for page in build_site().values() if "html" in page.content_type][:maximum]
    return [path.read_bytes() for path in sorted(folder.glob("*.html"))[:maximum]]


def main() -> None:
    """Run both races and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, help="JSON lines of pages")
    parser.add_argument("--html", type=Path, help="folder of HTML files")
    parser.add_argument("--count", type=int, default=400, help="at most so many pages (default: 400)")
    parser.add_argument("--warm", type=int, default=5000, help="texts before the clock runs (default: 5000)")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    arguments = parser.parse_args()
    jieba.setLogLevel(logging.WARNING)
    logging.getLogger().setLevel(logging.ERROR)
    pages = chinese_pages(arguments.pages, arguments.count + arguments.warm)
    prepare = build_fingerprinter().prepare
    ways: dict[str, Way] = {"twinsieve": prepare, "simhash": with_simhash, "jieba.posseg + simhash": with_posseg}
    measured, others = pages[: arguments.count], pages[arguments.count :] or pages
    for page in others:
        prepare(page)
    race(others[:5], ways)
    text = report("Chinese text → fingerprint", race(measured, ways), "twinsieve", len(measured))
    html = html_pages(arguments.html, arguments.count)
    pipelines: dict[str, Way] = {"twinsieve": OurPipeline(), "trafilatura + posseg + simhash index": UsualPipeline()}
    race(html[:20], pipelines)
    whole = report("HTML → verdict", race(html[20:], pipelines), "twinsieve", len(html) - 20)
    if arguments.json:
        arguments.json.write_text(json.dumps({"text": text, "html": whole}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
