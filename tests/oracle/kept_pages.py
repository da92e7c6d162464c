"""The oracle's store of kept pages: rows in arrays, and searches that look at every row.

Keys are the exception: what shares them is defined by the order of pages, so cells are kept as the log says
(`tests.oracle.plain_cells`), exactly the window behind it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

import numpy as np
import numpy.typing as npt

from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from tests.oracle.plain_cells import PlainCells, keys_of
from tests.oracle.similarity import estimated_jaccard, letters_of

CHANNELS = ("words", "body")
FAR = 255
EARLIEST = 64
LONG = 160
NOT_COMPARED = 0.15
SIEVE_BYTES, MOST_DIFFERING = 16, 53  # .58 of 128 bits are equal
ADDED, REMOVED = 0, 1
_BITS_OF_16 = np.array([value.bit_count() for value in range(1 << 16)], dtype=np.uint8)


def bit_counts(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the number of set bits of each of uint64[n]."""
    counts: npt.NDArray[np.int64] = _BITS_OF_16[values.view(np.uint16)].reshape(-1, 4).sum(axis=1, dtype=np.int64)
    return counts


def least_similarity(rule: MatchRule) -> float:
    """Return the Jaccard similarity below which pages are not compared by evidence."""
    return min([NOT_COMPARED, *(0.75 * row.jaccard for row in rule.verified)])


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A kept page and its place in the log. ordinal: number of pages decided before it."""

    sequence: int
    ordinal: int
    prepared: PreparedPage

    @property
    def url(self) -> str:
        """Its canonical URL."""
        return self.prepared.page.canonical_url

    @property
    def sieve(self) -> bytes:
        """The first bits of its sketch; all 0 without shingles."""
        evidence = Evidence(self.prepared.evidence)
        return evidence.sketch[:SIEVE_BYTES] if evidence.shingles else bytes(SIEVE_BYTES)


class KeptPages:
    """All kept pages, one for each canonical URL. layout: of the log."""

    def __init__(self, layout: IndexLayout) -> None:
        self.ordinal = -1
        self._window = layout.window
        self._cells = PlainCells(layout.slots)
        self._effects: list[tuple[int, int, int, KeptPage]] = []
        self._by_url: dict[str, tuple[int, KeptPage]] = {}
        self._rows: list[KeptPage | None] = []
        self._rows_of: dict[int, int] = {}
        self._same: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        self._sieves = np.zeros((1024, 2), np.uint64)
        self._count = count()
        self._values = {channel: np.zeros(1024, np.uint64) for channel in CHANNELS}
        self._has = {channel: np.zeros(1024, np.bool_) for channel in CHANNELS}
        self._youngest = 0

    def begin(self) -> None:
        """Count the next page: what the page before its window did reaches the cells."""
        self.ordinal += 1
        due = self.ordinal - self._window
        while self._effects and self._effects[0][0] <= due:
            _, what, _, kept = heappop(self._effects)
            if what == ADDED:
                self._cells.insert(kept.sequence, kept.ordinal, keys_of(kept.prepared.keys), kept.sieve)
            else:
                self._cells.remove(kept.sequence)
        while self._youngest < len(self._rows):
            young = self._rows[self._youngest]
            if young is not None and young.ordinal > due:
                break
            self._youngest += 1

    def __len__(self) -> int:
        """Return the number of kept pages."""
        return len(self._by_url)

    def earliest(self) -> KeptPage | None:
        """Return the kept page that came first, None if there is none."""
        return next((kept for _, kept in self._by_url.values()), None)

    def by_url(self, url: str | None) -> KeptPage | None:
        """Return the kept page of a canonical URL, None if there is none."""
        found = None if url is None else self._by_url.get(url)
        return None if found is None else found[1]

    def url_of(self, sequence: int) -> str | None:
        """Return the canonical URL of the kept page at a sequence, None if there is none (any more)."""
        row = self._rows_of.get(sequence)
        kept = None if row is None else self._rows[row]
        return None if kept is None else kept.url

    def keep(self, sequence: int, prepared: PreparedPage) -> None:
        """Add the present page."""
        kept, row = KeptPage(sequence, self.ordinal, prepared), len(self._rows)
        self._by_url[kept.url] = (row, kept)
        self._rows.append(kept)
        self._rows_of[sequence] = row
        self._effect(ADDED, kept)
        for name, value in (("text", prepared.text_hash), ("body", _telling_body(prepared))):
            if value is not None:
                self._same[name, value].append(row)
        if row == len(self._sieves):
            self._sieves = np.concatenate([self._sieves, np.zeros((row, 2), np.uint64)])
        self._sieves[row] = np.frombuffer(kept.sieve, np.uint64)
        for channel in CHANNELS:
            if row == len(self._values[channel]):
                self._values[channel] = np.concatenate([self._values[channel], np.zeros(row, np.uint64)])
                self._has[channel] = np.concatenate([self._has[channel], np.zeros(row, np.bool_)])
            value = getattr(prepared.fingerprint, channel)
            self._values[channel][row] = value or 0
            self._has[channel][row] = value is not None

    def remove(self, url: str) -> None:
        """Remove the page of a canonical URL, if there is one."""
        row, kept = self._by_url.pop(url, (None, None))
        if row is not None and kept is not None:
            self._rows[row] = None
            self._effect(REMOVED, kept)

    def candidates(self, rule: MatchRule, prepared: PreparedPage, common: Sequence[int]) -> list[KeptPage]:
        """Return the candidates for a page, the earliest first.

        They are, of each, the 64 earliest pages with the same text and those with the same body; of a page that
        can be judged, the pages within the radius of a channel; and, if the rule has keys, the pages of the
        window that may be similar, and those that the cells lead to. common: sentences of the page that are its
        host's own text.
        """
        rows = {*self._equal("text", prepared.text_hash), *self._equal("body", _telling_body(prepared))}
        if prepared.reason is None:
            for channel in CHANNELS:
                radius = rule.radius(channel)
                if radius is not None:
                    rows |= {row for row in self._near(channel, prepared, radius) if self._judged(row)}
        evidence = Evidence(prepared.evidence)
        if rule.keys and prepared.keys and evidence.shingles:
            sieve = evidence.sketch[:SIEVE_BYTES]
            found = self._cells.probe(keys_of(prepared.keys), sieve)
            rows |= {self._rows_of[sequence] for sequence in found}
            rows |= self._young(rule, evidence, sieve, common)
        return [kept for row in sorted(rows) if (kept := self._rows[row]) is not None]

    def _effect(self, what: int, kept: KeptPage) -> None:
        """Note an effect of the present page, or of a record after it, for the cells: its own entry comes first."""
        heappush(self._effects, (self.ordinal, what, next(self._count), kept))

    def _judged(self, row: int) -> bool:
        kept = self._rows[row]
        return kept is not None and kept.prepared.reason is None

    def _equal(self, name: str, value: int | None) -> list[int]:
        rows = [] if value is None else self._same.get((name, value), [])
        return [row for row in rows if self._rows[row] is not None][:EARLIEST]

    def _young(self, rule: MatchRule, evidence: Evidence, sieve: bytes, common: Sequence[int]) -> set[int]:
        young = self._sieves[self._youngest : len(self._rows)] ^ np.frombuffer(sieve, np.uint64)
        passed = np.flatnonzero(bit_counts(young.ravel()).reshape(-1, 2).sum(axis=1) <= MOST_DIFFERING)
        found = set()
        for row in (self._youngest + passed).tolist():
            kept = self._rows[row]
            if kept is not None and may_be_similar(kept.prepared.evidence, evidence, common, least_similarity(rule)):
                found.add(row)
        return found

    def _near(self, channel: str, prepared: PreparedPage, radius: int) -> list[int]:
        return np.flatnonzero(self._distances(channel, prepared) <= radius).tolist()

    def _distances(self, channel: str, prepared: PreparedPage) -> npt.NDArray[np.int64]:
        """Return the differing bits to each row: int64[rows]; FAR if either side has no fingerprint."""
        size, value = len(self._rows), getattr(prepared.fingerprint, channel)
        if value is None:
            return np.full(size, FAR, np.int64)
        bits = bit_counts(self._values[channel][:size] ^ np.uint64(value))
        bits[~self._has[channel][:size]] = FAR
        return bits


def may_be_similar(kept: bytes, evidence: Evidence, common: Sequence[int], min_jaccard: float) -> bool:
    """Return whether a kept page may have a Jaccard similarity of `min_jaccard` to a page.

    common: sentences of the page that are its host's own text. Only those that both have are known, so a page of which
    this is said may still be less similar.
    """
    other = Evidence(kept)
    if not (evidence.shingles and other.shingles):
        return False
    sentences = evidence.sentence_values
    ours = set(common) & set(sentences)
    known, a_letter = letters_of(sentences), evidence.shingles / evidence.letters if evidence.letters else 0.0
    if known:
        a_letter *= max(1.0, evidence.letters / known)
    rough = estimated_jaccard(evidence.sketch, other.sketch)
    shared = rough * ((evidence.shingles + other.shingles) / (1.0 + rough))
    rest = max(0.0, shared - letters_of(ours & set(other.sentence_values)) * a_letter)
    own = evidence.shingles - min(letters_of(ours), float(evidence.letters)) * a_letter
    ratio = max(evidence.shingles, other.shingles) / min(evidence.shingles, other.shingles)
    least = min_jaccard * (1.0 + (5.0 - min(5.0, ratio)) / 12.0)
    share = max(min_jaccard, 0.4) if ours else min_jaccard
    return rough >= least and rest >= share * max(rest, own)


def _telling_body(prepared: PreparedPage) -> int | None:
    """Return the hash of a body that is long enough for an equal one to be a copy under any title, else None."""
    return prepared.body_hash if Evidence(prepared.evidence).size >= LONG else None
