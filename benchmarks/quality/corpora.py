"""The evaluation data as values: pages in their order, and their truth.

DIR has `stream/` (pages.jsonl, truth.jsonl, unrelated30k.jsonl), `pairs/` (pages.jsonl, pairs.jsonl) and
`html/` (html.jsonl, pairs.jsonl and the HTML files that html.jsonl names). `natural/` (pages.jsonl, pairs.jsonl)
is in DIR or beside it, and may be missing. The data is copied nowhere except into the cache.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dedup_service.core.evaluation.scoring import LabelledPair, TruthRow, half_of
from dedup_service.core.page import Page
from dedup_service.core.url import canonicalise
from dedup_service.interfaces.cli.calibration.truth_files import read_truth

LABELLED = ("pairs", "html", "natural")
"""The tasks of labelled pairs."""


@dataclass(frozen=True, slots=True)
class HtmlTask:
    """A fetched page before extraction."""

    id: str
    url: str
    path: Path


@dataclass(frozen=True)
class Corpora:
    """The data in `folder`; each part is read on first use."""

    folder: Path

    @cached_property
    def stream(self) -> list[Page]:
        """The crawl, in its order."""
        return read_pages(self.folder / "stream" / "pages.jsonl")

    @cached_property
    def truth(self) -> list[TruthRow]:
        """The truth of each page of the stream."""
        rows = read_truth(self.folder / "stream" / "truth.jsonl")
        return [row for row in rows if isinstance(row, TruthRow)]

    @cached_property
    def pieces(self) -> list[Page]:
        """Unrelated pages cut into disjoint pieces, each a page without a title."""
        texts = {page.id: page.text for page in self.stream}
        rows = read_lines(self.folder / "stream" / "unrelated30k.jsonl")
        return [_piece(row, texts[row["of"]]) for row in rows]

    @cached_property
    def pair_pages(self) -> list[Page]:
        """The pages of the labelled pairs."""
        return read_pages(self.folder / "pairs" / "pages.jsonl")

    @cached_property
    def pairs(self) -> list[LabelledPair]:
        """The labelled pairs of texts."""
        return read_labelled(self.folder / "pairs" / "pairs.jsonl")

    @property
    def natural(self) -> Path | None:
        """The folder of the natural pairs, in `folder` or beside it, or None if it is missing."""
        return self.beside("natural")

    def beside(self, name: str) -> Path | None:
        """Return the folder `name` in `folder` or beside it, or None if it is missing."""
        places = (self.folder / name, self.folder.resolve().parent / name)
        return next((place for place in places if place.is_dir()), None)

    @property
    def labelled(self) -> tuple[str, ...]:
        """The tasks of labelled pairs of which there is data."""
        return tuple(task for task in LABELLED if task != "natural" or self.natural)

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks of which there is data, the stream first."""
        return ("stream", *self.labelled)

    @cached_property
    def natural_pages(self) -> list[Page]:
        """The pages of the natural pairs; FileNotFoundError if they are missing."""
        return read_pages(self._natural() / "pages.jsonl")

    @cached_property
    def natural_pairs(self) -> list[LabelledPair]:
        """The labelled natural pairs; FileNotFoundError if they are missing."""
        return read_labelled(self._natural() / "pairs.jsonl")

    def pairs_of(self, task: str) -> list[LabelledPair]:
        """Return the labelled pairs of a task: pairs, html or natural."""
        return {
            "pairs": lambda: self.pairs,
            "html": lambda: self.html_pairs,
            "natural": lambda: self.natural_pairs,
        }[task]()

    def files(self) -> list[Path]:
        """Return the files of pages and truth, by path within their task."""
        folders = [self.folder / name for name in ("stream", "pairs", "html")]
        return [path for folder in (*folders, self.natural) if folder for path in sorted(folder.glob("*.jsonl"))]

    def _natural(self) -> Path:
        if self.natural is None:
            message = f"no folder natural/ in {self.folder} or beside it: unpack the natural pairs there"
            raise FileNotFoundError(message)
        return self.natural

    @cached_property
    def html(self) -> list[HtmlTask]:
        """The HTML pages, before extraction."""
        rows = read_lines(self.folder / "html" / "html.jsonl")
        return [HtmlTask(row["id"], row["url"], self.folder / "html" / row["html_path"]) for row in rows]

    @cached_property
    def html_pairs(self) -> list[LabelledPair]:
        """The labelled pairs of HTML pages."""
        return read_labelled(self.folder / "html" / "pairs.jsonl")

    def plain(self, half: int) -> list[Page]:
        """Return the pages of the stream that repeat no other: originals and unrelated pages of `half`."""
        known = {row.id: row for row in self.truth}
        kinds = {"original", "unrelated"}
        rows = ((page, known[page.id]) for page in self.stream)
        return [page for page, row in rows if kinds.intersection(row.strata) and half_of(row.group) == half]


def read_lines(path: Path) -> Iterator[Any]:
    """Yield the values of a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def read_pages(path: Path) -> list[Page]:
    """Return the pages of a file of JSON lines."""
    return [
        Page(
            url=row["url"],
            canonical_url=canonicalise(row["url"]),
            id=row["id"],
            title=row.get("title") or "",
            text=row["text"],
            lang=row.get("lang"),
        )
        for row in read_lines(path)
    ]


def _piece(row: dict[str, Any], text: str) -> Page:
    url = f"https://pieces.example/{row['id']}"
    return Page(url=url, canonical_url=url, id=row["id"], text=text[row["start"] : row["end"]])


def read_labelled(path: Path) -> list[LabelledPair]:
    """Return the labelled pairs of a file of JSON lines."""
    return [row for row in read_truth(path) if isinstance(row, LabelledPair)]
