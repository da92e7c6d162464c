"""A stream of records whose right answers are known for any order in which the partitions are read.

Every record belongs to one of these kinds, and a URL to one kind only:

    story   a text at several URLs, visited once or more   one visit is `unique`, any other repeats it
    visits  a URL whose body changes                       `unique`; then `unchanged` or `updated`, by body
    short   too little text to judge                       `undecided`; then `unchanged`
    empty   no text at all                                 always `undecided`
    poison  describes no page                              no verdict, one dead letter
    based   a text of a page in a base of the log          `duplicate`; not in a stream (`tests.chaos.base_faults`)

A body of the kind `visits` is at no other URL.

The records of a URL keep their order, because the canonical URL is the key and so determines the partition.
Invariant: the same seed gives the same records.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tests.crawls.texts import Writer
from twinsieve_crawler.demo.templates import FRAMES

POISON: tuple[bytes | None, ...] = (
    b"",
    b"{",
    b"[]",
    b"\xff\xfe\x00",
    b'{"url": 7}',
    b'{"text": "no address"}',
    b'{"url": " "}',
    b'{"url": "https://poison.example/1", "text": ["not", "text"]}',
    None,
)


class Kind(StrEnum):
    """The kind of a record."""

    STORY = "story"
    VISITS = "visits"
    SHORT = "short"
    EMPTY = "empty"
    POISON = "poison"
    BASED = "based"


@dataclass(frozen=True, slots=True)
class RecordTruth:
    """name: the story or the URL; body: version of the text (equal names and bodies mean equal texts)."""

    kind: Kind
    name: str
    body: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A record to publish, with its truth. headers: those of the crawler, which must be preserved."""

    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    truth: RecordTruth


def stream(seed: int, pages: int, *, html: float = 0.03) -> Iterator[Sent]:
    """Yield `pages` records. html: share of the stories that come as HTML."""
    return _StreamGenerator(seed, html).records(pages)


class _StreamGenerator:
    def __init__(self, seed: int, html: float) -> None:
        self._rng = random.Random(seed)
        self._writer = Writer(self._rng)
        self._html = html
        self._number = 0
        self._stories: list[tuple[str, str, str]] = []  # name, field, text
        self._known: list[Sent] = []
        self._visited: list[str] = []
        self._short: list[Sent] = []

    def records(self, pages: int) -> Iterator[Sent]:
        """Yield records of random kinds."""
        makers = (
            (self._new_story, 42),
            (self._copy, 20),
            (self._again, 12),
            (self._visit, 13),
            (self._too_short, 6),
            (self._empty, 3),
            (self._poison, 4),
        )
        for number in range(pages):
            self._number = number
            make = self._rng.choices([one for one, _ in makers], [share for _, share in makers])[0]
            yield make()

    def _new_story(self) -> Sent:
        name, text = f"story-{self._number}", self._writer.text(self._rng.randint(500, 900))
        field = "text"
        if self._rng.random() < self._html:
            field, text = "html", self._as_html(text)
        self._stories.append((name, field, text))
        return self._of_story(name, field, text)

    def _copy(self) -> Sent:
        return self._of_story(*self._rng.choice(self._stories)) if self._stories else self._new_story()

    def _of_story(self, name: str, field: str, text: str) -> Sent:
        sent = self._page(
            f"https://site{self._number % 7}.example/{self._number}", RecordTruth(Kind.STORY, name, name), text, field
        )
        self._known.append(sent)
        return sent

    def _again(self) -> Sent:
        """Return an earlier record again, as a producer that retries would send it."""
        return self._rng.choice(self._known) if self._known else self._new_story()

    def _visit(self) -> Sent:
        """Return a visit of a URL whose body is new, changed or unchanged."""
        chance = self._rng.random()
        if not self._visited or chance < 0.4:
            url = f"https://live.example/{self._number}"
            self._visited.append(url)
        else:
            url = self._rng.choice(self._visited)
        version = f"{url} version {self._rng.randint(1, 3)}"
        text = Writer(random.Random(version)).text(400)
        return self._page(url, RecordTruth(Kind.VISITS, url, version), text)

    def _too_short(self) -> Sent:
        if self._short and self._rng.random() < 0.3:
            return self._rng.choice(self._short)
        url = f"https://short.example/{self._number}"
        self._short.append(self._page(url, RecordTruth(Kind.SHORT, url, ""), self._writer.chinese(15)))
        return self._short[-1]

    def _empty(self) -> Sent:
        url = f"https://empty.example/{self._number}"
        return self._page(url, RecordTruth(Kind.EMPTY, url, ""), self._rng.choice(("", " \n", "。。")))

    def _poison(self) -> Sent:
        key = f"poison-{self._number}"
        return Sent(key.encode(), self._rng.choice(POISON), self._headers(), RecordTruth(Kind.POISON, key, ""))

    def _page(self, url: str, truth: RecordTruth, text: str, field: str = "text") -> Sent:
        row = {
            "id": f"p{self._number}",
            "url": url,
            "title": self._writer.title(),
            field: text,
            "fetched": self._number,
        }
        if self._rng.random() < 0.1:
            row["url"] = f"{url}?utm_source=feed#top"  # another URL for a crawler, the same canonical URL
        value = json.dumps(row, ensure_ascii=self._rng.random() < 0.2).encode()
        return Sent(url.encode(), value, self._headers(), truth)

    def _headers(self) -> tuple[tuple[str, bytes], ...]:
        return (("trace", b"%d" % self._number),) if self._rng.random() < 0.5 else ()

    def _as_html(self, text: str) -> str:
        main = "".join(f"<p>{paragraph}</p>" for paragraph in text.splitlines())
        links = [(f"https://daily.example/{n}", self._writer.title()) for n in range(12)]
        return FRAMES["daily"].render("", f"<article>{main}</article>", links).decode()
