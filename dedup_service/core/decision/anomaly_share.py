"""The share of suspicious pages among the last thousand, against the usual share.

The last thousand pages are a ring of marks. The usual share is learned from whole thousands that have left
the ring: the mean of all of them, and from the twentieth on an exponentially weighted mean. A thousand with
a quarter of all pages more than usual suspicious is not learned: a fault does not become usual by lasting,
and a surge ends when the share returns. All arithmetic is in integers, so the result is the same on every
machine.
"""

RECENT = 1000
"""Pages in the ring."""

LEARNED = 20
"""Thousands over which the usual share adapts."""

_SCALE = 1 << 16
_MAX_EXCESS = RECENT // 4
"""Suspicious pages more than usual, above which a thousand is not learned."""


class AnomalyShare:
    """The marks so far.

    decided: pages. recent: marks of the last ones, uint8[RECENT] as bytes, a ring. before: suspicious pages
    in the latest whole thousand, which is learned when the next one is whole; -1 before there is one.
    learned: thousands learned, up to LEARNED. usual: suspicious pages in a thousand, in 1/2¹⁶.
    """

    def __init__(
        self, decided: int = 0, recent: bytes = bytes(RECENT), before: int = -1, learned: int = 0, usual: int = 0
    ) -> None:
        self.decided, self.before, self.learned, self.usual = decided, before, learned, usual
        self._ring = bytearray(recent)
        self._count = sum(recent)

    @property
    def recent(self) -> bytes:
        """The ring of marks; the next one goes to `decided` % RECENT."""
        return bytes(self._ring)

    @property
    def percents(self) -> tuple[int, int]:
        """Suspicious pages of a hundred: recently, and usually."""
        return self._count * 100 // RECENT, self.usual * 100 // (RECENT * _SCALE)

    def mark(self, suspicious: int) -> None:
        """Count one more page. suspicious: 1 or 0."""
        place = self.decided % RECENT
        self._count += suspicious - self._ring[place]
        self._ring[place] = suspicious
        self._go_on(1)

    def pass_by(self, pages: int) -> None:
        """Count more pages, none of them suspicious: the same as to mark each."""
        while pages:
            place = self.decided % RECENT
            part = min(pages, RECENT - place)
            self._count -= sum(self._ring[place : place + part])
            self._ring[place : place + part] = bytes(part)
            self._go_on(part)
            pages -= part

    def above(self, percent: int) -> bool:
        """Whether the share is more than `percent` points above the usual one, if that was learned."""
        return self.learned > 0 and self._count * _SCALE > self.usual + percent * RECENT * _SCALE // 100

    def _go_on(self, pages: int) -> None:
        """Count pages of one thousand that were marked."""
        self.decided += pages
        if self.decided % RECENT == 0:
            self._learn(self.before)
            self.before = self._count

    def _learn(self, suspicious: int) -> None:
        """Learn from a whole thousand that has left the ring; -1: there is none yet."""
        if suspicious < 0 or (self.learned and suspicious * _SCALE > self.usual + _MAX_EXCESS * _SCALE):
            return
        self.learned = min(self.learned + 1, LEARNED)
        self.usual += (suspicious * _SCALE - self.usual) // self.learned
