"""What people said of pairs of pages, which overrules the fingerprints from then on.

Pages are named by the hash of their canonical URL, so a judgement outlives the visit it was made on. The last one
on a pair holds.
"""

from collections.abc import Iterable

from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.url import url_hash

__all__ = ["Overrides"]


class Overrides:
    """All corrections in force: those in `records` make the same overrides again."""

    def __init__(self, corrections: Iterable[CorrectionRecord] = ()) -> None:
        self._of: dict[int, int] = {}
        self._apart: set[frozenset[int]] = set()
        self._records: dict[frozenset[int], CorrectionRecord] = {}
        for correction in corrections:
            self.add(correction)

    @property
    def records(self) -> tuple[CorrectionRecord, ...]:
        """The corrections that hold, oldest first."""
        return tuple(self._records.values())

    def add(self, correction: CorrectionRecord) -> None:
        """Take a judgement in; what it contradicts holds no longer."""
        url, original = url_hash(correction.url), url_hash(correction.original)
        pair = frozenset((url, original))
        self._records.pop(pair, None)
        self._records[pair] = correction
        for one, other in ((url, original), (original, url)):
            if self._of.get(one) == other:
                del self._of[one]
        if correction.duplicate:
            self._apart.discard(pair)
            if url in self._of:  # a page is a duplicate of one other: the earlier word is gone for good
                del self._records[frozenset((url, self._of[url]))]
            self._of[url] = original
        else:
            self._apart.add(pair)

    def duplicate_of(self, url: int) -> int | None:
        """Return the URL hash of the page that this one was called a duplicate of, or None."""
        return self._of.get(url)

    def apart(self, url: int, other: int) -> bool:
        """Whether the two were said not to be duplicates."""
        return bool(self._apart) and frozenset((url, other)) in self._apart
