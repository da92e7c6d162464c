"""Claim: text → fingerprints and HTML → verdict are faster than the usual combinations of packages.

Measured: 3.3 and 39 times as fast on Chinese text, 15 times on HTML (docs/performance.md).

    python -m benchmarks.fingerprint [--pages FILE] [--html DIR] [--count N]

Text: both channels of `twinsieve` against PyPI `simhash` (its defaults: 4-grams, MD5), and against
jieba.posseg with `simhash` over tagged words, the usual implementation of the published schemes.
HTML: extraction, fingerprints and decision against trafilatura at its defaults, jieba.posseg, and `simhash`
with its index.

All contenders run in one process: the pages are cut into chunks, and each contender takes each chunk in
turn. The ratio is that of the summed processor times, so that a slower machine slows all alike. Before the
measurement, `twinsieve` prepares --warm other pages, as in a running stream: it caches the words that it has
seen. The others cache nothing; they take a few pages to load their dictionaries.

Data: FILE has JSON lines of pages (`title`, `text`), of which the Chinese ones are used. DIR has *.html.
Without them the pages of the demo site are used.
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
import simhash  # type: ignore[import-untyped]
import trafilatura
from rich.console import Console
from rich.table import Table
from twinsieve_crawler.demo.articles import load_articles
from twinsieve_crawler.demo.site import build_site

from dedup_service.core.extraction import extract, to_page
from dedup_service.core.page import Page
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.resources import build_fingerprinter

CHUNK = 100  # smaller chunks would mostly measure the processor cache that the previous contender left
Contender = Callable[[Any], object]


def with_simhash(page: Page) -> object:
    """Fingerprint with PyPI simhash at its defaults."""
    return simhash.Simhash(page.title + "\n" + page.text)


def with_posseg(page: Page) -> simhash.Simhash:
    """Fingerprint with PyPI simhash over the tagged words of jieba.posseg."""
    words = [f"{pair.word}/{pair.flag}" for pair in jieba.posseg.cut(page.title + "\n" + page.text)]
    return simhash.Simhash(words)


class UsualPipeline:
    """trafilatura at its defaults, jieba.posseg, PyPI simhash and its index."""

    def __init__(self) -> None:
        self._index = simhash.SimhashIndex([], k=3)
        self._numbers = count()

    def __call__(self, html: bytes) -> object:
        """Return the near-duplicates found, and add the page."""
        found: Any = trafilatura.bare_extraction(html, with_metadata=True)
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


def race(items: Sequence[Any], contenders: dict[str, Contender]) -> dict[str, list[float]]:
    """Return processor seconds an item for each contender and chunk."""
    spent: dict[str, list[float]] = {name: [] for name in contenders}
    for start in range(0, len(items), CHUNK):
        chunk = items[start : start + CHUNK]
        for name, contender in contenders.items():
            began = time.process_time()
            for item in chunk:
                contender(item)
            spent[name].append((time.process_time() - began) / len(chunk))
    return spent


def report(title: str, spent: dict[str, list[float]], ours: str, pages: int) -> dict[str, Any]:
    """Print one table and return its figures."""
    table = Table(title=f"{title}: {pages} pages, one core")
    for heading in ("contender", "pages/s", "ms a page, median chunk", f"times slower than {ours}"):
        table.add_column(heading, justify="left" if heading == "contender" else "right")
    figures = {}
    for name, chunks in spent.items():
        ratio = sum(chunks) / sum(spent[ours])
        figures[name] = {"pages_per_s": len(chunks) / sum(chunks), "ratio": ratio}
        table.add_row(
            name, f"{len(chunks) / sum(chunks):,.0f}", f"{statistics.median(chunks) * 1e3:.2f}", f"{ratio:.1f}"
        )
    Console(width=120).print(table)
    return figures


def chinese_pages(path: Path | None, limit: int) -> list[Page]:
    """Return at most `limit` Chinese pages of a file, or of the demo."""
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
        for n, row in enumerate(chinese[:limit])
    ]


def html_pages(folder: Path | None, limit: int) -> list[bytes]:
    """Return at most `limit` HTML files of a folder, or of the demo site."""
    if folder is None:
        return [page.bodies[0] for page in build_site().values() if "html" in page.content_type][:limit]
    return [path.read_bytes() for path in sorted(folder.glob("*.html"))[:limit]]


def main() -> None:
    """Run both races and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, help="JSON lines of pages")
    parser.add_argument("--html", type=Path, help="folder of HTML files")
    parser.add_argument("--count", type=int, default=400, help="maximum number of pages (default: 400)")
    parser.add_argument(
        "--warm", type=int, default=5000, help="texts to prepare before the measurement (default: 5000)"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    if arguments.count < CHUNK:
        parser.error(f"--count must be at least {CHUNK}")
    jieba.setLogLevel(logging.WARNING)
    logging.getLogger().setLevel(logging.ERROR)
    pages = chinese_pages(arguments.pages, arguments.count + arguments.warm)
    prepare = build_fingerprinter().prepare
    contenders: dict[str, Contender] = {
        "twinsieve": prepare,
        "simhash": with_simhash,
        "jieba.posseg + simhash": with_posseg,
    }
    measured, others = pages[: arguments.count], pages[arguments.count :] or pages
    for page in others:
        prepare(page)
    race(others[:5], contenders)
    text = report("Chinese text → fingerprint", race(measured, contenders), "twinsieve", len(measured))
    html = html_pages(arguments.html, arguments.count)
    pipelines: dict[str, Contender] = {
        "twinsieve": OurPipeline(),
        "trafilatura + posseg + simhash index": UsualPipeline(),
    }
    race(html[:20], pipelines)
    whole = report("HTML → verdict", race(html[20:], pipelines), "twinsieve", len(html) - 20)
    if arguments.json:
        arguments.json.write_text(json.dumps({"text": text, "html": whole}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
