"""From a page to its fingerprint in both channels.

`words`: SimHash of the features of the weighting scheme, as a rule weighted words of title and body.
`body`: SimHash of the distinct character n-grams of the body alone.
A page without text has no `body`, and no `words` unless the scheme defines it. A page with too few letters,
or with the same few again and again, has both, but also a reason why it cannot be judged, and is never
compared by distance.

All of that is the crate's work (`native/src/prepare.rs`), but for the words of the papers' schemes, which are weighed
here by their formulas.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from dedup_service._native import Preparer
from dedup_service.core.features.words import Feature, WordTable, tagged
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.space import Space

__all__ = ["Feature", "Fingerprinter"]


class Fingerprinter:
    """Makes the fingerprints of one space; threads may share it.

    preparer: with the tables whose digests `space` has. tags: returns word → part of speech, if a scheme needs it.
    """

    def __init__(self, space: Space, preparer: Preparer, tags: Callable[[], Mapping[str, str]]) -> None:
        self.space = space
        self.space_id = space.space_id
        self._preparer = preparer
        self._tags = tags

    def prepare(self, page: Page) -> PreparedPage:
        """Return `page` with fingerprints, hashes of its text and evidence, and why it cannot be judged if so."""
        (prepared,) = self.prepare_all([page])
        return prepared

    def prepare_all(self, pages: Sequence[Page], threads: int = 1) -> list[PreparedPage]:
        """Return each page as `prepare` does. threads: 1 works in the caller's; the interpreter lock is released."""
        scheme, bits = self.space.scheme, self.space.bits
        return [
            PreparedPage(
                page=page,
                fingerprint=Fingerprint(
                    made.words
                    if scheme.is_usual
                    else scheme.fingerprint(page.text, partial(self._table, page), bits=bits),
                    made.body,
                ),
                body_hash=made.body_hash,
                text_hash=made.text_hash,
                evidence=made.evidence,
                reason=made.reason,
                keys=made.keys,
            )
            for page, made in zip(pages, self._preparer.prepare(pages, threads), strict=True)
        ]

    def fingerprint(self, page: Page) -> Fingerprint:
        """Return the fingerprints of `page`."""
        return self.prepare(page).fingerprint

    def words(self, page: Page) -> list[str]:
        """Return the distinct words of title and body, which an IDF table counts."""
        return [word.word for word in self._table(page).words]

    def explain(self, page: Page, *, limit: int = 20) -> list[Feature]:
        """Return the `limit` heaviest features of the `words` channel, heaviest first."""
        return self.space.scheme.features(page.text, partial(self._table, page), limit)

    def _table(self, page: Page) -> WordTable:
        words = self._preparer.words(page)
        return tagged(words, self._tags()) if self.space.scheme.pos else WordTable(words)
