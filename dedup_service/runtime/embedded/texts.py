"""The main texts of the latest pages, compressed, within a budget; the oldest are dropped first.

Explanations and rechecks use them; no verdict does, so a text may be missing at any time. Each text is one zstd frame
and can be read and dropped separately. The budget counts the bytes of the frames.
"""

import sqlite3
from collections.abc import Iterable

import zstandard

from dedup_service.runtime.embedded.database import insert_rows

_LEVEL = 1  # 12 to 30 µs a page; 3 takes up to a third longer and stores 2% less (2,560 news pages of 3.7 KB)


class TextStore:
    """The `text` table of a journal. budget_bytes: 0 stores nothing; size_bytes: current size."""

    def __init__(self, connection: sqlite3.Connection, budget_bytes: int, size_bytes: int) -> None:
        self._connection = connection
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self._decompressor = zstandard.ZstdDecompressor()
        self.budget_bytes = budget_bytes
        self.size_bytes = size_bytes

    def add(self, texts: Iterable[tuple[int, str]]) -> int:
        """Store (sequence, text) rows in the open transaction, and drop the oldest texts above the budget.

        A text that is empty, or larger than the budget by itself, is not stored. Returns the change in bytes.
        """
        before = self.size_bytes
        compress = self._compressor.compress
        texts = ((sequence, text) for sequence, text in texts if text and self.budget_bytes)
        frames = [(sequence, compress(text.encode("utf-8", "surrogatepass"))) for sequence, text in texts]
        frames = [row for row in frames if len(row[1]) <= self.budget_bytes]
        insert_rows(self._connection, "INSERT INTO text", "(?, ?)", frames)
        self.size_bytes += sum(len(frame) for _, frame in frames)
        self._drop_oldest()
        return self.size_bytes - before

    def get(self, sequence: int) -> str | None:
        """Return the text of the page at `sequence`; None if it is not kept."""
        row = self._connection.execute("SELECT frame FROM text WHERE sequence = ?", (sequence,)).fetchone()
        return None if row is None else self._decompressor.decompress(row[0]).decode("utf-8", "surrogatepass")

    def drop(self, sequence: int) -> int:
        """Drop one text in the open transaction, and return the change in bytes."""
        if not self.size_bytes:
            return 0
        rows = self._connection.execute("DELETE FROM text WHERE sequence = ? RETURNING length(frame)", (sequence,))
        change: int = -sum(size for (size,) in rows.fetchall())
        self.size_bytes += change
        return change

    def _drop_oldest(self) -> None:
        excess = self.size_bytes - self.budget_bytes
        if excess <= 0:
            return
        freed, last = 0, 0
        oldest = self._connection.execute("SELECT sequence, length(frame) FROM text ORDER BY sequence")
        for sequence, size in oldest:
            freed, last = freed + size, sequence
            if freed >= excess:
                break
        oldest.close()
        self._connection.execute("DELETE FROM text WHERE sequence <= ?", (last,))
        self.size_bytes -= freed
