"""Overrides: corrections in force. They take precedence over rules and guards.

Pages are identified by the hash of their canonical URL, so a correction outlives the visit that it was made
for. The latest correction of a pair is in force.
"""

from collections.abc import Iterable

from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.url import url_hash


class Overrides:
    """All corrections in force. `Overrides(overrides.records)` makes an equal one."""

    def __init__(self, corrections: Iterable[CorrectionRecord] = ()) -> None:
        self._original_of: dict[int, int] = {}
        self._distinct: set[frozenset[int]] = set()
        self._records: dict[frozenset[int], CorrectionRecord] = {}
        for correction in corrections:
            self.add(correction)

    @property
    def any_duplicates(self) -> bool:
        """Whether any page is called a duplicate of another."""
        return bool(self._original_of)

    @property
    def records(self) -> tuple[CorrectionRecord, ...]:
        """The corrections in force, oldest first."""
        return tuple(self._records.values())

    def add(self, correction: CorrectionRecord) -> None:
        """Add a correction; those that it contradicts are no longer in force."""
        url, original = url_hash(correction.url), url_hash(correction.original)
        pair = frozenset((url, original))
        self._records.pop(pair, None)
        self._records[pair] = correction
        for one, other in ((url, original), (original, url)):
            if self._original_of.get(one) == other:
                del self._original_of[one]
        if correction.duplicate:
            self._distinct.discard(pair)
            if url in self._original_of:  # a page has one original: the earlier correction ends
                del self._records[frozenset((url, self._original_of[url]))]
            self._original_of[url] = original
        else:
            self._distinct.add(pair)

    def duplicate_of(self, url: int) -> int | None:
        """Return the URL hash of the page that corrections call the original of this one, or None."""
        return self._original_of.get(url)

    def are_distinct(self, url: int, other: int) -> bool:
        """Whether a correction says that the two are not duplicates."""
        return bool(self._distinct) and frozenset((url, other)) in self._distinct
