"""From a page to its fingerprint in both channels.

`words`: SimHash of the features of the weighting scheme, as a rule weighted words of title and body.
`body`: SimHash of the distinct character n-grams of the body alone.
A page without text has no `body`, and no `words` unless the scheme defines it. A page with too few letters,
or with the same few again and again, has both, but also a reason why it cannot be judged, and is never
compared by distance.
"""

from collections.abc import Iterator, Sequence

from dedup_service.core.evidence.similarity import pack
from dedup_service.core.features.hashing import word_hasher
from dedup_service.core.features.idf import IdfTable
from dedup_service.core.features.lexicon import Lexicon
from dedup_service.core.features.words import Feature, PageWords, WordCounter, WordTable
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.quick_values import quick_maker
from dedup_service.core.space import Space
from dedup_service.core.text.exact_form import exact_hashes
from dedup_service.core.text.folded_pages import folded_pages
from dedup_service.core.text.page_text import PageTexts
from dedup_service.core.text.segmentation import Segmenter
from dedup_service.core.text_features import text_features

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

    def prepare_all(self, pages: Sequence[Page]) -> list[PreparedPage]:
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
