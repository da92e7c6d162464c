"""The share of suspicious pages among the last thousand, against the usual one; integers, so exact wherever it is redone.

The last thousand are a ring of marks. The usual share is learned a thousand at a time, once they have left the ring:
the mean of all, and from the twentieth on an exponentially weighted one. A thousand with a quarter more suspicious pages
than usual teaches nothing: what is wrong does not become usual by lasting, and a jump ends when the share returns.
"""

__all__ = ["LEARNED", "RECENT", "AnomalyShare"]

RECENT = 1000
LEARNED = 20
"""Thousands that the usual share follows."""

_PART = 1 << 16
_ODD = RECENT // 4


class AnomalyShare:
    """The marks so far.

    decided: pages. recent: their last marks, a byte each, as a ring. before: suspicious ones in the thousand before the
    last whole one; -1 where there is none. learned: thousands learned, up to LEARNED. usual: suspicious ones in a
    thousand, in 1/2¹⁶.
    """

    def __init__(
        self, decided: int = 0, recent: bytes = bytes(RECENT), before: int = -1, learned: int = 0, usual: int = 0
    ) -> None:
        self.decided, self.before, self.learned, self.usual = decided, before, learned, usual
        self._ring = bytearray(recent)
        self._count = sum(recent)

    @property
    def recent(self) -> bytes:
        """The last marks; the next one goes to place `decided` % RECENT."""
        return bytes(self._ring)

    @property
    def percents(self) -> tuple[int, int]:
        """How many of a hundred pages were suspicious: recently, and usually."""
        return self._count * 100 // RECENT, self.usual * 100 // (RECENT * _PART)

    def mark(self, suspicious: int) -> None:
        """Count one more page: 1 where it is suspicious, else 0."""
        at = self.decided % RECENT
        self._count += suspicious - self._ring[at]
        self._ring[at] = suspicious
        self.decided += 1
        if at == RECENT - 1:
            self._learn(self.before)
            self.before = self._count

    def above(self, percent: int) -> bool:
        """Whether so many of a hundred more than usual are suspicious; never before a thousand were learned."""
        return self.learned > 0 and self._count * _PART > self.usual + percent * RECENT * _PART // 100

    def _learn(self, suspicious: int) -> None:
        """Learn from a whole thousand that has left the ring."""
        if suspicious < 0 or (self.learned and suspicious * _PART > self.usual + _ODD * _PART):
            return
        self.learned = min(self.learned + 1, LEARNED)
        self.usual += (suspicious * _PART - self.usual) // self.learned
