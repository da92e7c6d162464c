"""The oracle's store of kept pages: rows in arrays, and a search that looks at every row."""

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.rule import MatchRule

__all__ = ["KeptPage", "KeptPages", "bit_counts"]

CHANNELS = ("words", "body")
FAR = 255
EARLIEST = 64
VERIFIED = 32
_BITS_OF_16 = np.array([value.bit_count() for value in range(1 << 16)], dtype=np.uint8)


def bit_counts(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the number of set bits of each of uint64[n]."""
    counts: npt.NDArray[np.int64] = _BITS_OF_16[values.view(np.uint16)].reshape(-1, 4).sum(axis=1, dtype=np.int64)
    return counts


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A kept page and its place in the log."""

    sequence: int
    prepared: PreparedPage

    @property
    def url(self) -> str:
        """Its canonical URL."""
        return self.prepared.page.canonical_url


class KeptPages:
    """All kept pages, one for each canonical URL."""

    def __init__(self) -> None:
        self._by_url: dict[str, tuple[int, KeptPage]] = {}
        self._rows: list[KeptPage | None] = []
        self._values = {channel: np.zeros(1024, np.uint64) for channel in CHANNELS}
        self._has = {channel: np.zeros(1024, np.bool_) for channel in CHANNELS}
        self._sharing: defaultdict[int, list[int]] = defaultdict(list)

    def by_url(self, url: str | None) -> KeptPage | None:
        """Return the kept page of a canonical URL, None if there is none."""
        found = None if url is None else self._by_url.get(url)
        return None if found is None else found[1]

    def keep(self, sequence: int, prepared: PreparedPage) -> None:
        """Add a page."""
        kept, row = KeptPage(sequence, prepared), len(self._rows)
        self._by_url[kept.url] = (row, kept)
        self._rows.append(kept)
        for key in _keys(prepared):
            self._sharing[key].append(row)
        for channel in CHANNELS:
            if row == len(self._values[channel]):
                self._values[channel] = np.concatenate([self._values[channel], np.zeros(row, np.uint64)])
                self._has[channel] = np.concatenate([self._has[channel], np.zeros(row, np.bool_)])
            value = getattr(prepared.fingerprint, channel)
            self._values[channel][row] = value or 0
            self._has[channel][row] = value is not None

    def remove(self, url: str) -> None:
        """Remove the page of a canonical URL, if there is one."""
        row, _ = self._by_url.pop(url, (None, None))
        if row is not None:
            self._rows[row] = None

    def candidates(self, rule: MatchRule, prepared: PreparedPage) -> list[KeptPage]:
        """Return the pages that satisfy a distance condition of the rule, and those that share a key.

        A page that cannot be judged has no distances. For each key, only its 64 earliest pages that are
        still kept count. Of all these, the 32 pages that share the most keys are candidates; of equals, the
        earliest.
        """
        distances = {channel: self._distances(channel, prepared) for channel in CHANNELS}
        near = np.zeros(len(self._rows), np.bool_)
        for condition in rule.conditions:
            fits = np.ones(len(self._rows), np.bool_)
            for channel in CHANNELS:
                bound = getattr(condition, channel)
                if bound is not None:
                    fits &= distances[channel] <= bound
            near |= fits
        if rule.combined is not None:
            near |= distances["words"] <= rule.combined.radius
        found = [self._rows[row] for row in np.flatnonzero(near).tolist()] if prepared.reason is None else []
        by_distance = [kept for kept in found if kept is not None and kept.prepared.reason is None]
        shared: Counter[int] = Counter()
        for key in _keys(prepared) if rule.keys else ():
            shared.update([row for row in self._sharing[key] if self._rows[row] is not None][:EARLIEST])
        best = sorted(shared, key=lambda row: (-shared[row], row))[:VERIFIED]
        by_key = [kept for row in best if (kept := self._rows[row]) is not None]
        return list({kept.sequence: kept for kept in (*by_distance, *by_key)}.values())

    def _distances(self, channel: str, prepared: PreparedPage) -> npt.NDArray[np.int64]:
        """Return the differing bits to each row: int64[rows]; FAR if either side has no fingerprint."""
        size, value = len(self._rows), getattr(prepared.fingerprint, channel)
        if value is None:
            return np.full(size, FAR, np.int64)
        bits = bit_counts(self._values[channel][:size] ^ np.uint64(value))
        bits[~self._has[channel][:size]] = FAR
        return bits


def _keys(prepared: PreparedPage) -> set[int]:
    return set(Evidence(prepared.evidence).keys.tolist()) - {0}
