"""Our own articles in several languages, their edited copies, and pages that only look like copies.

Each file of `tests/language_texts/` has sentences on six topics with placeholders for names, numbers and dates. An
article takes sentences from one main topic and from others, fills them at random from the seed and joins
them to paragraphs. A copy is an article after one edit; a look-alike shares an article's topic, its
sentences with other names and numbers, or its headline and boilerplate. Strengths S1 to S3: copies that lost
or gained up to 5, 15 and 30% of their text.
"""

import random
import re
import tomllib
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import opencc

from dedup_service.core.evaluation.scoring import TruthRow
from dedup_service.core.page import Page

LANGUAGES = ("zh", "ja", "ko", "en", "de", "ar", "th", "mixed")
ARTICLES = 400
SENTENCES = (12, 20)
OF_TOPIC = 6  # sentences of an article on its main topic; the others come from any other topic
PARAGRAPH = 3

_HALF_KANA = {unicodedata.normalize("NFKC", chr(code)): chr(code) for code in range(0xFF66, 0xFF9E)}
_MARKS = "\u064e\u064f\u0650\u0651\u0652"


@dataclass(frozen=True, slots=True)
class LanguageStream:
    """Pages of one language in crawl order, and the truth about each."""

    pages: list[Page]
    truth: list[TruthRow]


@dataclass(frozen=True, slots=True)
class _Article:
    """An article. templates: its sentences with placeholders; extra: a last paragraph."""

    topic: str
    headline: str
    templates: tuple[str, ...]
    sentences: tuple[str, ...]
    extra: str = ""


class _Writer:
    def __init__(self, language: str, seed: int) -> None:
        path = Path(__file__).parents[1] / "tests" / "language_texts" / f"{language}.toml"
        self._bank = tomllib.loads(path.read_text(encoding="utf-8"))
        self._random = random.Random(f"{seed} {language}")
        self.language = language
        self.topics = sorted(self._bank["topics"])

    def article(self, topic: str) -> _Article:
        topics: dict[str, list[str]] = self._bank["topics"]
        own = self._random.sample(topics[topic], OF_TOPIC)
        others = [line for name, lines in topics.items() if name != topic for line in lines]
        more = self._random.sample(others, self._random.randint(*SENTENCES) - OF_TOPIC)
        lines = [*own, *more]
        self._random.shuffle(lines)
        return _Article(topic, self.headline(topic), tuple(lines), tuple(map(self._filled, lines)))

    def headline(self, topic: str) -> str:
        return self._filled(self._random.choice(self._bank["headline"][topic]))

    def boilerplate(self) -> str:
        return str(self._random.choice(self._bank["boilerplate"]))

    def text(self, article: _Article) -> str:
        sentences = [line.removesuffix(self._bank["ending"]) for line in article.sentences]
        sentences = [line + self._bank["ending"] for line in sentences]
        starts = range(0, len(sentences), PARAGRAPH)
        paragraphs = [self._bank["sentence_join"].join(sentences[at : at + PARAGRAPH]) for at in starts]
        return "\n".join([*paragraphs, article.extra] if article.extra else paragraphs)

    # Edits: each returns a changed article.

    def dropped(self, article: _Article, share: float) -> _Article:
        count = len(article.sentences)
        dropped = set(self._random.sample(range(count), max(1, round(count * share))))
        return replace(article, sentences=tuple(line for at, line in enumerate(article.sentences) if at not in dropped))

    def replaced(self, article: _Article) -> _Article:
        lines = list(article.sentences)
        for at in self._random.sample(range(len(lines)), 2):
            lines[at] = self._filled(self._random.choice(self._bank["topics"][article.topic]))
        return replace(article, sentences=tuple(lines))

    def retitled(self, article: _Article) -> _Article:
        return replace(article, headline=self.headline(article.topic))

    def reordered(self, article: _Article) -> _Article:
        starts = list(range(0, len(article.sentences), PARAGRAPH))
        self._random.shuffle(starts)
        return replace(article, sentences=tuple(x for at in starts for x in article.sentences[at : at + PARAGRAPH]))

    def sourced(self, article: _Article) -> _Article:
        return replace(article, extra=self._filled(self._bank["source_line"]) + "\n" + self.boilerplate())

    def typeset(self, article: _Article) -> _Article:
        change = _TYPOGRAPHY[self.language]
        lines = tuple(change(line, self._random) for line in article.sentences)
        return replace(article, headline=change(article.headline, self._random), sentences=lines)

    def series(self, article: _Article) -> _Article:
        """Return the next item of a series: the same sentences with other names, numbers and dates."""
        return replace(
            article, headline=self.headline(article.topic), sentences=tuple(map(self._filled, article.templates))
        )

    def one_fact_changed(self, sentences: int) -> tuple[str, str]:
        """Return a text of `sentences` sentences, and the same with one name, number or date changed."""
        pools: dict[str, list[str]] = self._bank["topics"]
        templates = self._random.sample([line for lines in pools.values() for line in lines], sentences)
        parts = [_parts(template) for template in templates]
        facts = [[self._value(name, self._random) for name in names] for _, names in parts]
        texts = [self._joined(parts, facts)]
        places = [(at, slot) for at, names in enumerate(facts) for slot in range(len(names))]
        at, slot = self._random.choice(places)
        old = facts[at][slot]
        while facts[at][slot] == old:
            facts[at][slot] = self._value(parts[at][1][slot], self._random)
        texts.append(self._joined(parts, facts))
        return texts[0], texts[1]

    def _joined(self, parts: list[tuple[list[str], list[str]]], facts: list[list[str]]) -> str:
        lines = [self._capital(_put(between, values)) for (between, _), values in zip(parts, facts, strict=True)]
        ending = self._bank["ending"]
        return str(self._bank["sentence_join"].join(line.removesuffix(ending) + ending for line in lines))

    def _filled(self, template: str) -> str:
        between, names = _parts(template)
        return self._capital(_put(between, [self._value(name, self._random) for name in names]))

    def _capital(self, line: str) -> str:
        return line[0].upper() + line[1:] if self._bank["sentence_join"] else line

    def _value(self, name: str, pick: random.Random) -> str:
        if name == "date":
            return str(self._bank["date"]).format(day=pick.randint(1, 28), month=pick.choice(self._bank["months"]))
        ranges = {"number": (60, 9800), "small": (3, 59), "percent": (2, 38)}
        if name in ranges:
            return str(pick.randint(*ranges[name]))
        return str(pick.choice(self._bank[name]))


def _parts(template: str) -> tuple[list[str], list[str]]:
    """Return the texts around the placeholders of a template, and the names of the placeholders."""
    parts = re.split(r"\{(\w+)\}", template)
    return parts[::2], parts[1::2]


def _put(between: list[str], values: list[str]) -> str:
    return between[0] + "".join(value + text for value, text in zip(values, between[1:], strict=True))


EDITS: dict[str, tuple[str, Callable[[_Writer, _Article], _Article]]] = {
    "drop_5": ("S1", lambda writer, article: writer.dropped(article, 0.05)),
    "drop_15": ("S2", lambda writer, article: writer.dropped(article, 0.15)),
    "drop_30": ("S3", lambda writer, article: writer.dropped(article, 0.30)),
    "replace": ("S2", _Writer.replaced),
    "headline": ("S1", _Writer.retitled),
    "reorder": ("S1", _Writer.reordered),
    "typography": ("S1", _Writer.typeset),
    "source_line": ("S1", _Writer.sourced),
}


def stream_of(language: str, seed: int = 6) -> LanguageStream:
    """Return ARTICLES articles in `language`, a copy of each by one of EDITS, and look-alikes."""
    writer = _Writer(language, seed)
    names = writer.topics
    articles = [writer.article(names[at % len(names)]) for at in range(ARTICLES)]
    rows: list[tuple[str, str, str, _Article]] = []
    for at, article in enumerate(articles):
        rows.append((f"{language}{at}", "original", "", article))
    for at, article in enumerate(articles):
        operator = list(EDITS)[at % len(EDITS)]
        strength, edit = EDITS[operator]
        rows.append((f"{language}{at}", operator, strength, edit(writer, article)))
        if at % 4 == 0:
            rows.append((f"{language}s{at}", "hardneg_series", "", writer.series(article)))
        if at % 4 == 1:
            rows.append((f"{language}t{at}", "hardneg_topic", "", writer.article(article.topic)))
        if at % 4 == 2:
            shared = replace(writer.article(article.topic), headline=article.headline, extra=writer.boilerplate())
            rows.append((f"{language}b{at}", "hardneg_boilerplate", "", shared))
    pages = [_page(writer, number, row[3]) for number, row in enumerate(rows)]
    truth = [
        TruthRow(page.id, group, bool(strength), (operator, strength) if strength else (operator,))
        for page, (group, operator, strength, _) in zip(pages, rows, strict=True)
    ]
    return LanguageStream(pages, truth)


def short_pairs(language: str, count: int, seed: int = 6) -> list[tuple[str, str]]:
    """Return `count` pairs of texts of one to six sentences that differ in a name, number, date or place."""
    writer = _Writer(language, seed)
    return [writer.one_fact_changed(1 + at % 6) for at in range(count)]


def _page(writer: _Writer, number: int, article: _Article) -> Page:
    url = f"https://{writer.language}.example/{number}"
    return Page(url=url, canonical_url=url, id=url, title=article.headline, text=writer.text(article))


def _spread(text: str, inserted: str, pick: random.Random, after: Callable[[str], bool] = str.isalpha) -> str:
    """Insert one of `inserted` after a fifth of the characters for which `after` is true."""
    return "".join(c + (pick.choice(inserted) if after(c) and pick.random() < 0.2 else "") for c in text)


def _wide(text: str, _: random.Random) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


@cache
def _traditional() -> opencc.OpenCC:
    return opencc.OpenCC("s2t")


def _arabic(text: str, pick: random.Random) -> str:
    """Return Arabic text stretched, partly vowelled and with bare alefs, as in print."""
    bare = text.translate(str.maketrans("أإآ", "ااا"))
    joined = "بتثجحخسشصضطظعغفقكلمنهي"
    stretched = "".join(
        c + ("ـ" if c in joined and after in joined and pick.random() < 0.1 else "")
        for c, after in zip(bare, bare[1:] + " ", strict=True)
    )
    return _spread(stretched, _MARKS, pick, lambda c: "\u0621" <= c <= "\u064a" and c != "ـ")


_TYPOGRAPHY: dict[str, Callable[[str, random.Random], str]] = {
    "zh": lambda text, pick: _wide(_traditional().convert(text), pick),
    "mixed": lambda text, pick: _wide(_traditional().convert(text), pick),
    "ja": lambda text, pick: "".join(_HALF_KANA.get(c, c) for c in _wide(text, pick)),
    "ko": lambda text, _: unicodedata.normalize("NFD", text),
    "en": lambda text, pick: _spread(text.replace("'", "’").replace(" ", "\u00a0", 3), "\u00ad", pick),
    "de": lambda text, pick: _spread(
        unicodedata.normalize("NFD", text).replace("ß", "ss"), "\u00ad", pick, str.islower
    ),
    "ar": _arabic,
    "th": lambda text, pick: _spread(text.replace("ำ", "ํา"), "\u200b", pick, lambda c: c in "งนมยรว"),
}
