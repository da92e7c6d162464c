"""From a page to its fingerprint in both channels.

`words`: SimHash of the features of the weighting scheme, as a rule weighted words of title and body.
`body`: SimHash of the distinct character n-grams of the body alone.
A page without text has no `body`, and no `words` unless the scheme defines it. A page with too few letters,
or with the same few again and again, has both, but also a reason why it cannot be judged, and is never
compared by distance.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.keys import LEVELS, min_hash_keys, packed_keys
from dedup_service.core.evidence.packed import SHINGLE, pack_evidence
from dedup_service.core.evidence.similarity import pack
from dedup_service.core.features.hashing import word_hasher
from dedup_service.core.features.idf import IdfTable
from dedup_service.core.features.lexicon import Lexicon
from dedup_service.core.features.simhash import LANE, simhash_unweighted
from dedup_service.core.features.words import Feature, WordCounter, WordTable
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.space import Space
from dedup_service.core.splitmix import GAMMA, mix64
from dedup_service.core.text.exact_form import body_hash, exact_form, text_hash
from dedup_service.core.text.ngrams import distinct_ngrams
from dedup_service.core.text.normalise import fold_exactly, letters, without_headline
from dedup_service.core.text.repost_markers import without_repost_marks
from dedup_service.core.text.segmentation import Segmenter

__all__ = ["Feature", "Fingerprinter"]

_BETWEEN = "\0"
"""A line between title and body that folding leaves alone."""

_Texts = tuple[str, str]
"""Title and body."""


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
        (title, folded), exact = _folded_exactly(page)
        exact_title, exact_body = map(exact_form, exact)
        body_letters = letters(folded)
        ngrams = distinct_ngrams(body_letters, self.space.shingle)
        shingles = distinct_ngrams(body_letters, SHINGLE)
        metadata = pack((*page.keywords, *page.tags, *page.references))
        reason = page.problem or self._too_little(len(body_letters), len(ngrams))
        return PreparedPage(
            page=page,
            fingerprint=Fingerprint(words=self._words(page, title, folded), body=self._body(ngrams)),
            body_hash=body_hash(exact_body),
            text_hash=text_hash(exact_title, exact_body),
            evidence=pack_evidence(title, folded, body_letters, metadata, shingles),
            reason=reason,
            keys=b"" if reason is not None else packed_keys(min_hash_keys(shingles, LEVELS)),
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
        return self._counter.table(*_folded_exactly(page)[0], page.lang)

    def _words(self, page: Page, title: str, folded: str) -> int | None:
        return self.space.scheme.fingerprint(
            page.text, lambda: self._counter.table(title, folded, page.lang), bits=self.space.bits
        )

    def _body(self, hashes: npt.NDArray[np.uint64]) -> int | None:
        lanes = [hashes] if self.space.bits == LANE else [hashes, mix64(hashes + GAMMA)]
        return simhash_unweighted(lanes)

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


def _folded_exactly(page: Page) -> tuple[_Texts, _Texts]:
    """Return title and body folded, and both folded without loss; the body without headline and repost markers.

    Both are folded in one call, since each call has a fixed cost.
    """
    if _BETWEEN in page.title or _BETWEEN in page.text:
        (title, exact_title), (body, exact_body) = fold_exactly(page.title), fold_exactly(page.text)
        return _bare(title, body), _bare(exact_title, exact_body)
    folded, exact = map(_parted, fold_exactly(f"{page.title}\n{_BETWEEN}\n{page.text}"))
    texts = _bare(*folded)
    return texts, texts if exact == folded else _bare(*exact)


def _parted(folded: str) -> _Texts:
    title, _, body = folded.partition(_BETWEEN)
    return title.strip("\n"), body.strip("\n")


def _bare(title: str, body: str) -> _Texts:
    return title, without_repost_marks(without_headline(body, title))
