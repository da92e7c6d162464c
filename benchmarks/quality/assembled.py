"""Pages assembled from real sentences: any number of different pages, under templates of any size.

A sentence is a run of clauses of 12 to 24 letters. Each page has OWN sentences that no other page has, and the
template of its host, which is a fixed share of the letters. The real sentences last for about twenty thousand
pages. After that a sentence is the first half of one real sentence and the second half of another: no two
pages share a sentence, but two pages may share halves.

Every page is a function of the sentences and of its number alone, so a larger crawl begins with the smaller
one, and processes can assemble parts of it independently. Nothing assembled is stored in the project.
"""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dedup_service.core.page import Page
from dedup_service.core.url import canonicalise

OWN = 20
"""Sentences of a page's own."""

FEWEST, MOST = 12, 24
"""Letters of a sentence."""

DROPPED, REPLACED = 3, 2
"""Own sentences that an edited copy drops, and that it replaces."""

PAGES_A_HOST, HOSTS_AT_ONCE = 100, 10
"""Pages of each host of a mixed crawl, and hosts that take turns."""

FRESH = 1_000_000_000
"""Place in the supply from which replaced sentences and short texts are taken: no page reaches it."""

_FOR_TEMPLATES = 8
"""Of so many sentences, one is reserved for templates."""

_SENTENCE = re.compile("[^。！？!?；;…\n]+")
_CLAUSE = re.compile("[^，,、：:]+[，,、：:]?")
_COMMAS = "，,、：:"


def letters_of(text: str) -> str:
    """Return the letters and digits of a text."""
    return "".join(filter(str.isalnum, text))


def sentences_of(texts: Iterable[str]) -> Iterator[str]:
    """Yield the sentences of FEWEST to MOST letters; longer ones are cut at commas. Without end marks."""
    for text in texts:
        for match in _SENTENCE.finditer(text):
            run = ""
            for clause in _CLAUSE.findall(match.group().strip()):
                if len(letters_of(run + clause)) > MOST:
                    run = ""
                run += clause
                if len(letters_of(run)) >= FEWEST:
                    if len(letters_of(run)) <= MOST:
                        yield run.strip(_COMMAS + " ")
                    run = ""


@dataclass(frozen=True)
class Supply:
    """An endless sequence of different texts. texts: distinct real ones, which come first, in this order."""

    texts: Sequence[str]
    seed: int = 7

    def __getitem__(self, place: int) -> str:
        """Return the text at `place`, from 0."""
        turn, at = divmod(place, len(self.texts))
        if turn == 0:
            return self.texts[at]
        first, second = (self.texts[int(self.order(2 * turn + half)[at])] for half in (0, 1))
        return first[: _middle(first)] + second[_middle(second) :]

    def order(self, number: int) -> npt.NDArray[np.int32]:
        """Return the order in which halves of the texts are used: int32[n], a permutation."""
        return _permutation(self.seed, number, len(self.texts))


@lru_cache(maxsize=16)
def _permutation(seed: int, number: int, size: int) -> npt.NDArray[np.int32]:
    return np.random.default_rng([seed, number]).permutation(size).astype(np.int32)


def _middle(text: str) -> int:
    """Return where to cut a text: after the comma nearest to the middle, else between two characters."""
    middle = len(text) // 2
    commas = [at + 1 for at, mark in enumerate(text) if mark in _COMMAS and abs(at + 1 - middle) <= len(text) // 4]
    if commas:
        return min(commas, key=lambda at: abs(at - middle))
    while middle < len(text) and (text[middle - 1 : middle + 1]).isascii() and text[middle - 1 : middle + 1].isalnum():
        middle += 1
    return middle


@dataclass(frozen=True)
class Library:
    """What pages are assembled from. own: sentences of pages; template: of templates; titles: of all pages."""

    own: Supply
    template: Supply
    titles: Supply

    def letters(self) -> float:
        """Return the mean number of letters of a page's own text."""
        sample = self.own.texts[:5000]
        return OWN * sum(len(letters_of(text)) for text in sample) / len(sample)


def library_of(pages: Iterable[Page], seed: int = 7) -> Library:
    """Return the distinct sentences and titles of `pages`, in random order.

    Texts with the same letters are the same. A sentence that begins or ends as another one is another.
    """
    pages = list(pages)
    sentences = {letters_of(text): text for text in sentences_of(page.text for page in pages)}
    titles = {letters_of(page.title): page.title.strip() for page in pages if len(letters_of(page.title)) >= 8}
    rng = random.Random(seed)
    mixed = rng.sample(list(sentences.values()), len(sentences))
    reserved = len(mixed) // _FOR_TEMPLATES
    return Library(
        Supply(mixed[reserved:], seed),
        Supply(mixed[:reserved], seed + 1),
        Supply(rng.sample(list(titles.values()), len(titles)), seed + 2),
    )


@dataclass(frozen=True, slots=True)
class Crawl:
    """Assembled pages, numbered from 0.

    share: of a page's letters that are the template of its host, 0 to less than 1.
    mixed: many hosts, ten of which take turns, with PAGES_A_HOST pages each; otherwise one host.
    """

    share: float
    mixed: bool = False

    @property
    def name(self) -> str:
        """Return what tables call the crawl."""
        return "many hosts" if self.mixed else "one site"

    def page(self, library: Library, number: int) -> Page:
        """Return page `number`."""
        host = self._host(number)
        return self._page(library, host, f"https://www.site{host}.example/a/{number}", number, _own(library, number))

    def copy(self, library: Library, number: int, *, where: str) -> Page:
        """Return an edited copy of page `number`: 3 of its 20 sentences dropped, 2 replaced, the same title.

        where: "same host"; "other host", with the template of the first one (a mirror); "no template", which
        is another host that took the text without its template.
        """
        rng = random.Random(f"{number} {where}")
        own = _own(library, number)
        replaced = rng.sample(range(OWN), DROPPED + REPLACED)
        for at in replaced[:REPLACED]:
            own[at] = library.own[FRESH + rng.randrange(len(library.own.texts))]
        kept = [text for at, text in enumerate(own) if at not in replaced[REPLACED:]]
        host = self._host(number)
        site = f"www.site{host}" if where == "same host" else f"copies.{where.replace(' ', '-')}"
        url = f"https://{site}.example/copy/{number}"
        return self._page(library, None if where == "no template" else host, url, number, kept)

    def template(self, library: Library, host: int) -> list[str]:
        """Return the sentences of the template of `host`; the last one may be cut."""
        return list(_template(library, self.share, host))

    def _host(self, number: int) -> int:
        if not self.mixed:
            return 0
        return number // (PAGES_A_HOST * HOSTS_AT_ONCE) * HOSTS_AT_ONCE + number % HOSTS_AT_ONCE

    def _page(self, library: Library, host: int | None, url: str, number: int, own: Sequence[str]) -> Page:
        template = [] if host is None else self.template(library, host)
        half = len(template) // 2
        paragraphs = ["。".join(own[at : at + 5]) for at in range(0, len(own), 5)]
        lines = [*template[:half], *paragraphs, *template[half:]]
        return Page(
            url=url,
            canonical_url=canonicalise(url),
            id=url,
            title=library.titles[number],
            text="。\n".join(lines) + "。",
            lang="zh-hans",
        )


def _own(library: Library, number: int) -> list[str]:
    return [library.own[number * OWN + at] for at in range(OWN)]


_TEMPLATES: dict[tuple[int, float, int], tuple[str, ...]] = {}


def _template(library: Library, share: float, host: int) -> tuple[str, ...]:
    key = (id(library), share, host)
    if key not in _TEMPLATES:
        if len(_TEMPLATES) > 4 * HOSTS_AT_ONCE:
            _TEMPLATES.clear()
        _TEMPLATES[key] = tuple(_cut(library, library.letters() * share / (1 - share), host))
    return _TEMPLATES[key]


def _cut(library: Library, letters: float, host: int) -> Iterator[str]:
    place, wanted = host * round(letters / FEWEST + 1), round(letters)
    while wanted > 0:
        text = library.template[place]
        while len(letters_of(text)) > wanted:
            text = text[:-1]
        if text:
            yield text
        wanted -= len(letters_of(text)) or wanted
        place += 1
