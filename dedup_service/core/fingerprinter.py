"""From a page to its fingerprint in both channels.

`words`: SimHash of the features of the weighting scheme, as a rule weighted words of title and body.
`body`: SimHash of the distinct character n-grams of the body alone.
A page without text has no `body`, and no `words` unless the scheme defines it. A page with too few letters,
or with the same few again and again, has both, but also a reason why it cannot be judged, and is never
compared by distance.

What is computed of the letters of pages, without their words, in one compiled call for a batch.

The letters of the body have n-grams, of which the `body` channel is made, and shingles, of which its min-hash keys and
the sketch are made; the rest of the evidence comes from the characters. The steps are those of `core.text`,
`core.features` and `core.evidence`. They are one call since each call costs as much as a short step, and without the
interpreter lock, since they take some fifty microseconds a page.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.keys import LEVELS, PARTS, min_hash_keys, packed_rows
from dedup_service.core.evidence.numbers import CHARACTERS
from dedup_service.core.evidence.packed import MAX_PACKED, SHINGLE, write_evidence
from dedup_service.core.evidence.sentences import ENDS
from dedup_service.core.evidence.similarity import pack
from dedup_service.core.features.hashing import word_hasher
from dedup_service.core.features.idf import IdfTable
from dedup_service.core.features.lexicon import Lexicon
from dedup_service.core.features.simhash import LANE, majority
from dedup_service.core.features.words import Feature, PageWords, WordCounter, WordTable
from dedup_service.core.kernels import kernel, long_kernel
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.quick_values import quick_maker
from dedup_service.core.space import Space
from dedup_service.core.splitmix import GAMMA, mix64_in_kernel
from dedup_service.core.text.exact_form import exact_hashes
from dedup_service.core.text.folded_pages import folded_pages
from dedup_service.core.text.ngrams import distinct_ngrams
from dedup_service.core.text.normalise import letter_table, letters_among
from dedup_service.core.text.page_text import PageTexts
from dedup_service.core.text.segmentation.segmenter import Segmenter

Points = npt.NDArray[np.uint32]


class TextFeatures(NamedTuple):
    """What the letters of a page give.

    letters: how many the body has. ngrams: how many different n-grams they have. body: their SimHash, None without any.
    evidence, keys: as in a `PreparedPage`.
    """

    letters: int
    ngrams: int
    body: int | None
    evidence: bytes
    keys: bytes


def text_features(pages: PageTexts, metadata: Sequence[bytes], *, shingle: int, bits: int) -> list[TextFeatures]:
    """Return what the letters of each page give.

    metadata: of each page, packed by `core.evidence.similarity`. shingle: letters of an n-gram of the `body` channel.
    bits: of a fingerprint, 64 or 128.
    """
    packed = np.empty(len(pages) * MAX_PACKED, np.uint8)
    sizes = np.fromiter(map(len, metadata), np.int64, len(pages))
    tables = CHARACTERS, ENDS, letter_table()
    counts, halves, keys = features_of_all(
        pages.points, pages.starts, pages.bodies, shingle, bits > LANE, sizes, *tables, packed
    )
    ends = counts[:, 2].cumsum()
    pieces, places = packed[: ends[-1] if len(ends) else 0].tobytes(), [0, *ends.tolist()]
    made = zip(counts.tolist(), halves.tolist(), pairwise(places), metadata, packed_rows(keys), strict=True)
    return [
        TextFeatures(
            letters,
            ngrams,
            low | high << LANE if ngrams else None,
            pieces[start:end] + more if letters or more else b"",
            of_page if letters >= SHINGLE else b"",
        )
        for (letters, ngrams, _), (low, high), (start, end), more, of_page in made
    ]


@long_kernel
def features_of_all(
    points: Points,
    starts: npt.NDArray[np.int64],
    bodies: npt.NDArray[np.int64],
    shingle: int,
    is_wide: bool,
    metadata: npt.NDArray[np.int64],
    characters: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.uint8],
    letter_table: npt.NDArray[np.bool_],
    packed: npt.NDArray[np.uint8],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
    """Write the packed evidence of n pages, one after the other, and return what else `features_of` does of each.

    points, starts, bodies: of `PageTexts`. metadata: how many bytes each has, int64[n]. packed: uint8[n * MAX_PACKED].
    Returned are letters, n-grams and the size of the evidence, int64[n, 3], the halves of the SimHash, uint64[n, 2],
    and the keys, uint32[n, PARTS, LEVELS].
    """
    pages = len(bodies)
    counts, halves = np.empty((pages, 3), np.int64), np.empty((pages, 2), np.uint64)
    keys = np.empty((pages, PARTS, LEVELS), np.uint32)
    at = 0
    for page in range(pages):
        body, title = points[starts[page] : bodies[page]], points[bodies[page] : starts[page + 1]]
        counts[page, 0], counts[page, 1], halves[page, 0], halves[page, 1], counts[page, 2], keys[page] = features_of(
            body, title, shingle, is_wide, metadata[page], characters, ends, letter_table, packed[at : at + MAX_PACKED]
        )
        at += counts[page, 2]
    return counts, halves, keys


@kernel
def features_of(
    body: Points,
    title: Points,
    shingle: int,
    is_wide: bool,
    metadata: int,
    characters: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.uint8],
    letter_table: npt.NDArray[np.bool_],
    packed: npt.NDArray[np.uint8],
) -> tuple[int, int, np.uint64, np.uint64, int, npt.NDArray[np.uint32]]:
    """Write packed evidence, and return the letters and n-grams, the halves of the SimHash, its size, and the keys.

    body, title: uint32[n] each. is_wide: whether a SimHash has two halves. metadata to packed: as
    of `packed.write_evidence`. The keys are uint32[PARTS, LEVELS].
    """
    letters = letters_among(body, letter_table)
    ngrams = distinct_ngrams(letters, shingle)
    low, high = majority(ngrams), np.uint64(0)
    if is_wide:
        others = np.empty(len(ngrams), np.uint64)
        for i in range(len(ngrams)):
            others[i] = mix64_in_kernel(ngrams[i] + GAMMA)
        high = majority(others)
    shingles = distinct_ngrams(letters, SHINGLE)
    size = write_evidence(title, body, letters, shingles, metadata, characters, ends, letter_table, packed)
    return len(letters), len(ngrams), low, high, size, min_hash_keys(shingles, LEVELS)


__all__ = ["Feature", "Fingerprinter"]

_MAX_PAGES, _MAX_CHARS = 128, 1 << 17
"""Pages and characters that are prepared in one call: the arrays of a step are still in the processor's cache then."""


_new_fingerprint, _new_prepared = quick_maker(Fingerprint), quick_maker(PreparedPage)


class Fingerprinter:
    """Makes the fingerprints of one space.

    The tables must be those whose digests `space` has. A fingerprinter remembers the words that it has seen
    and is not thread-safe: `runtime.resources` gives each thread another one.
    """

    def __init__(self, space: Space, segmenter: Segmenter, lexicon: Lexicon, idf: IdfTable) -> None:
        self.space = space
        self.space_id = space.space_id
        hash_word, bits = word_hasher(space.scheme.hash), space.bits
        self._counter = WordCounter(segmenter, lexicon, idf, space.scheme.needs, lambda word: hash_word(word, bits))

    def prepare(self, page: Page) -> PreparedPage:
        """Return `page` with fingerprints, hashes of its text and evidence, and why it cannot be judged if so."""
        (prepared,) = self.prepare_all([page])
        return prepared

    def prepare_all(self, pages: Sequence[Page], threads: int = 1) -> list[PreparedPage]:  # noqa: ARG002
        """Return each page as `prepare` does, in less time: the compiled loops take many pages in one call."""
        return [prepared for batch in _batches(pages) for prepared in self._prepared(batch)]

    def _prepared(self, pages: Sequence[Page]) -> Iterator[PreparedPage]:
        texts, exact = _folded(pages)
        metadata = [
            pack((*page.keywords, *page.tags, *page.references))
            if page.keywords or page.tags or page.references
            else b""
            for page in pages
        ]
        made = text_features(texts, metadata, shingle=self.space.shingle, bits=self.space.bits)
        words = self._words(pages, texts)
        for page, (body, text), features, of_words in zip(pages, exact_hashes(exact), made, words, strict=True):
            reason = page.problem or self._too_little(features.letters, features.ngrams)
            yield _new_prepared(
                page=page,
                fingerprint=_new_fingerprint(of_words, features.body),
                body_hash=body,
                text_hash=text,
                evidence=features.evidence,
                reason=reason,
                keys=b"" if reason is not None else features.keys,
            )

    def fingerprint(self, page: Page) -> Fingerprint:
        """Return the fingerprints of `page`."""
        return self.prepare(page).fingerprint

    def words(self, page: Page) -> list[str]:
        """Return the distinct words of title and body, which an IDF table counts."""
        return self._table(page).words

    def explain(self, page: Page, *, limit: int = 20) -> list[Feature]:
        """Return the `limit` heaviest features of the `words` channel, heaviest first."""
        return self.space.scheme.features(page.text, lambda: self._table(page), limit)

    def _table(self, page: Page) -> WordTable:
        return self._counter.table(_folded([page])[0].page(0), page.lang)

    def _words(self, pages: Sequence[Page], texts: PageTexts) -> list[int | None]:
        words = PageWords(self._counter, texts, [page.lang for page in pages])
        return self.space.scheme.fingerprints([page.text for page in pages], words, bits=self.space.bits)

    def _too_little(self, count: int, ngrams: int) -> str | None:
        """Return why so many letters and distinct n-grams are too little, or None.

        Of few features, each bit of a fingerprint has a small margin.
        """
        if count == 0:
            return "no text"
        minimum = self.space.min_letters
        if count < minimum:
            return f"too little text: {count} letters, at least {minimum} to judge"
        if ngrams < minimum // 2:
            needed = minimum // 2
            return f"too little variety: {ngrams} different shingles in {count} letters, at least {needed} to judge"
        return None


def _folded(pages: Sequence[Page]) -> tuple[PageTexts, PageTexts]:
    return folded_pages([(page.title, page.text) for page in pages])


def _batches(pages: Sequence[Page]) -> Iterator[Sequence[Page]]:
    """Yield the pages in parts of at most _MAX_PAGES and, unless one page has more, _MAX_CHARS."""
    start = chars = 0
    for number, page in enumerate(pages):
        own = len(page.title) + len(page.text)
        if number > start and (number - start == _MAX_PAGES or chars + own > _MAX_CHARS):
            yield pages[start:number]
            start, chars = number, 0
        chars += own
    if start < len(pages):
        yield pages[start:]
