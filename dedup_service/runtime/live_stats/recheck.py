"""Does the filter err? A share of the duplicates, compared again by all of their texts.

How: a duplicate is drawn by a hash of its sequence, so another run over the same log draws the same ones, one a second
at most; a thread fetches both texts and compares all their shingles, where the verdict had sketches of them (or
fingerprints alone). The verdict is borne out where the texts share enough, either of all that they have or of the
shorter one; otherwise it counts as a false drop. Two articles that differ in a name and a number share nearly all, so
this finds what came of estimates and radii, not what a person would call another article: corrections tell of those.
Invariant: whatever happens here, the stream neither waits nor fails; a text that is gone counts as unchecked.
"""

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from dedup_service.core.evidence.packed import SHINGLE
from dedup_service.core.splitmix import splitmix64
from dedup_service.core.text.ngrams import distinct_ngrams
from dedup_service.core.text.normalise import fold, letters
from dedup_service.runtime.live_stats.newest import DuplicateRow

__all__ = ["RecheckResult", "Rechecker", "Sampler", "Texts", "compare"]

_LOG = logging.getLogger(__name__)

JACCARD, CONTAINMENT = 0.4, 0.7
"""Shares of shingles, of both texts and of the smaller set, either of which bears a verdict out. Chosen on one half of
a stream of 16,936 news pages; on the other it calls 1 of 3,004 right duplicates wrong, and 12 of 18 wrong ones (of the
profiles balanced and simhash together)."""

SAMPLE = 0.25
BETWEEN_S = 1.0
"""Of the duplicates, and seconds between two at least: of a fast stream it is far fewer. A pair takes about 1 ms."""

WAITING = 16

Texts = Callable[[DuplicateRow], tuple[str | None, str | None]]
"""Row → full texts of the page and of the one it repeats; None for one that is gone. May wait, and may raise."""


@dataclass(frozen=True, slots=True)
class RecheckResult:
    """A duplicate whose texts were compared. jaccard, containment: exact, 0 to 1."""

    row: DuplicateRow
    jaccard: float
    containment: float

    @property
    def borne_out(self) -> bool:
        """Whether the texts share what a duplicate shares."""
        return self.jaccard >= JACCARD or self.containment >= CONTAINMENT


def compare(text: str, other: str) -> tuple[float, float]:
    """Return the exact Jaccard similarity of the shingles of two texts, and their containment in the larger set.

    >>> compare("one two three", "one two three")
    (1.0, 1.0)
    """
    one, two = (set(distinct_ngrams(letters(fold(side)), SHINGLE).tolist()) for side in (text, other))
    if not (one and two):
        return (1.0, 1.0) if fold(text) == fold(other) else (0.0, 0.0)
    common = len(one & two)
    return common / len(one | two), common / min(len(one), len(two))


class Sampler:
    """Draws duplicates. share: of them, 0 to 1. between_s: two of them, at least. seed: of the draw."""

    def __init__(self, share: float = SAMPLE, between_s: float = BETWEEN_S, seed: int = 7) -> None:
        self.share = share
        self._between_s = between_s
        self._seed = seed
        self._next_s = 0.0
        self.drawn: queue.Queue[DuplicateRow] = queue.Queue(WAITING)

    def offer(self, row: DuplicateRow, now_s: float) -> bool:
        """Draw `row`, or not; return whether it was. Never waits."""
        if now_s < self._next_s or row.original_sequence is None or not self._hit(row.sequence):
            return False
        self._next_s = now_s + self._between_s
        try:
            self.drawn.put_nowait(row)
        except queue.Full:
            return False
        return True

    def _hit(self, sequence: int) -> bool:
        return splitmix64(sequence ^ self._seed) < self.share * 2.0**64


class Rechecker:
    """The thread that compares what `sampler` draws, while entered. tell: gets each result, None for a text gone."""

    def __init__(self, sampler: Sampler, texts: Texts, tell: Callable[[RecheckResult | None], None]) -> None:
        self._sampler = sampler
        self._texts = texts
        self._tell = tell
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="twinsieve-checker", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                row = self._sampler.drawn.get(timeout=0.2)
            except queue.Empty:
                continue
            try:
                self._tell(self._checked(row))
            except Exception:
                _LOG.exception("a duplicate could not be compared again")
                self._tell(None)

    def _checked(self, row: DuplicateRow) -> RecheckResult | None:
        text, other = self._texts(row)
        return None if text is None or other is None else RecheckResult(row, *compare(text, other))
