"""The crawls of the golden run: our own pages in a fixed order, with what operators do in between.

    demo       the sites of `twinsieve demo`, each page as served at its first and at its last visit: HTML
    stream     copies, repeat visits, updates, short and empty pages (`tests.crawls.stream`)
    languages  articles in all languages of `tests/language_texts`, with copies, look-alikes and short pages
    changes    few stories under templates, while the rule and the bounds of expiry change, and pages are retracted
               and corrected

Invariant: every build has the same bytes; no clock is read.
"""

import json
import random
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dedup_service.core.log_records import CorrectionRecord, RetractionRecord
from tests.crawls.stream import Kind, stream
from tests.crawls.texts import Writer
from twinsieve_crawler.demo.site import build_site

LANGUAGES = Path(__file__).parents[1] / "language_texts"
ARTICLES = 20
"""Articles in each language."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A page as a crawler has it. body: HTML as it was served, with its Content-Type; None if only text is known."""

    url: str
    title: str = ""
    text: str = ""
    body: bytes | None = None
    content_type: str | None = None
    id: str | None = None

    def line(self, fetched: int) -> bytes:
        """Return the page as a line of JSON. fetched: which no other line has, or a filter would know this one."""
        row: dict[str, Any] = {"url": self.url, "fetched": fetched} | ({} if self.id is None else {"id": self.id})
        if self.body is None:
            row |= {"title": self.title, "text": self.text}
        else:
            encoding = (self.content_type or "").partition("charset=")[2] or "utf-8"
            row["html"] = self.body.decode(encoding)
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"


Step = Fetched | RetractionRecord | CorrectionRecord


@dataclass(frozen=True, slots=True)
class Section:
    """Steps under one policy. keep: bounds as text, as `--keep` takes them."""

    steps: tuple[Step, ...]
    profile: str = "balanced"
    keep: str = "all"


@dataclass(frozen=True, slots=True)
class Crawl:
    """A crawl. name: of its digests."""

    name: str
    sections: tuple[Section, ...]

    @property
    def pages(self) -> int:
        """Number of pages."""
        return sum(isinstance(step, Fetched) for section in self.sections for step in section.steps)


def crawls() -> dict[str, Callable[[], Crawl]]:
    """Return what makes each crawl, by name; the smallest comes first."""
    return {
        "demo": lambda: Crawl("demo", (Section(tuple(_demo())),)),
        "stream": lambda: Crawl("stream", (Section(tuple(_stream(600))),)),
        "languages": lambda: Crawl("languages", (Section(tuple(_languages())),)),
        "changes": lambda: Crawl("changes", tuple(_changes())),
    }


def _demo() -> Iterator[Fetched]:
    pages = build_site()
    for visit in (0, -1):
        for path, page in pages.items():
            yield Fetched(f"https://demo.example{path}", body=page.bodies[visit], content_type=page.content_type)


def _stream(pages: int) -> Iterator[Fetched]:
    for sent in stream(1, pages, html=0.1):
        if sent.truth.kind is Kind.POISON:
            continue
        row = json.loads(sent.value or b"")
        if "html" in row:
            yield Fetched(row["url"], body=row["html"].encode(), content_type="text/html; charset=utf-8", id=row["id"])
        else:
            yield Fetched(row["url"], row["title"], row["text"], id=row["id"])


def _languages() -> Iterator[Fetched]:
    for path in sorted(LANGUAGES.glob("*.toml")):
        yield from _Language(path).pages()


class _Language:
    """Articles made of a bank of sentences with placeholders, by a generator of its own."""

    def __init__(self, path: Path) -> None:
        self._bank: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        self._rng = random.Random(f"golden {path.stem}")
        self._name = path.stem

    def pages(self) -> Iterator[Fetched]:
        lines = [line for topic in self._bank["topics"].values() for line in topic]
        for number in range(ARTICLES):
            topic = self._rng.choice(sorted(self._bank["headline"]))
            title = self._filled(self._rng.choice(self._bank["headline"][topic]))
            templates = self._rng.sample(lines, self._rng.randint(8, 16))
            sentences = [self._filled(line) for line in templates]
            yield self._page(f"{number}", title, sentences)
            headline = title if number % 3 else self._filled(self._rng.choice(self._bank["headline"][topic]))
            yield self._page(f"copy/{number}", headline, self._edited(sentences, templates, number))
            if number % 2 == 0:  # the next item of a series: the same sentences with other names and numbers
                yield self._page(f"next/{number}", title, [self._filled(line) for line in templates])
            if number % 3 == 0:
                yield self._page(f"short/{number}", "", sentences[: 1 + number % 2])

    def _edited(self, sentences: list[str], templates: list[str], number: int) -> list[str]:
        """Return the sentences cut, reordered, framed, halved, shortened, with other figures, or as they are."""
        third = set(self._rng.sample(range(len(sentences)), len(sentences) // 3))
        match number % 7:
            case 1:
                return sentences[1:]
            case 2:
                return sentences[4:] + sentences[:4]
            case 3:
                return [
                    *sentences,
                    self._filled(self._bank["source_line"]),
                    self._rng.choice(self._bank["boilerplate"]),
                ]
            case 4:
                return sentences[: len(sentences) // 2]
            case 5 | 6 as edit:
                return [
                    line if at not in third else line[len(line) // 3 :] if edit == 5 else self._filled(templates[at])
                    for at, line in enumerate(sentences)
                ]
        return sentences

    def _page(self, path: str, title: str, sentences: list[str]) -> Fetched:
        return Fetched(f"https://{self._name}.example/{path}", title, self._bank["sentence_join"].join(sentences))

    def _filled(self, template: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: self._value(found[1]), template)

    def _value(self, name: str) -> str:
        if name == "date":
            month = self._rng.choice(self._bank["months"])
            return str(self._bank["date"]).format(day=self._rng.randint(1, 28), month=month)
        ranges = {"number": (60, 9800), "small": (3, 59), "percent": (2, 38)}
        return str(self._rng.randint(*ranges[name]) if name in ranges else self._rng.choice(self._bank[name]))


def _changes() -> Iterator[Section]:
    site = _TemplateSites(7)
    for profile, keep, pages in (
        ("balanced", "all", 220),
        ("broad", "90", 160),
        ("precise", "40", 120),
        ("simhash", "all", 80),
        ("balanced", "all", 60),
    ):
        yield Section(tuple(site.steps(pages)), profile, keep)


class _TemplateSites:
    """Sites whose pages share long templates, so that many pages share keys."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._writer = Writer(self._rng)
        self._templates = [[self._writer.text(120) for _ in range(3 * site)] for site in range(4)]
        self._stories: list[tuple[str, list[str]]] = []
        self._urls: list[str] = []

    def steps(self, pages: int) -> Iterator[Step]:
        for _ in range(pages):
            yield self._page()
            chance = self._rng.random()
            if chance < 0.04:
                yield RetractionRecord(self._rng.choice(self._urls[-60:]), "taken down")
            elif chance < 0.08 and len(set(self._urls)) > 1:
                url, original = self._rng.sample(sorted(set(self._urls[-60:])), 2)
                yield CorrectionRecord(url, original, self._rng.random() < 0.6, "seen")

    def _page(self) -> Fetched:
        rng, chance = self._rng, self._rng.random()
        if chance < 0.35 or not self._stories:
            parts = [self._writer.text(90) for _ in range(rng.choice([2, 4, 8]))]
            self._stories.append((self._writer.title(), parts))
            title, own = self._stories[-1]
        elif chance < 0.4:
            title, own = "", []  # the template alone
        elif chance < 0.45:
            title, own = "", [self._writer.chinese(12)]
        else:
            title, parts = rng.choice(self._stories[-30:])
            own = list(parts)
            if chance > 0.65:
                own[rng.randrange(len(own))] = self._writer.text(90)
            if chance > 0.85:
                own += [f"{rng.randrange(40)} ships, {rng.randrange(2000)} people. "] * 2
        site = rng.randrange(len(self._templates))
        template = self._templates[site] if rng.random() < 0.7 else []
        is_known = self._urls and rng.random() < 0.15
        url = rng.choice(self._urls[-40:]) if is_known else f"https://site{site}.example/{len(self._urls)}"
        self._urls.append(url)
        return Fetched(url, title, "\n".join([*template, *own]))
