"""Identical bodies are extracted once: a bounded memory of what extraction said of them.

How: keyed by a 128-bit hash of the body and its declared encoding (50 µs for 500 KB, where extraction takes
milliseconds); the least recently used go first, past a number of bodies or an amount of text.
Invariant: `extract` answers exactly as `core.extraction.extract` does. Safe to share between threads.
Served twice under two addresses, an error page or a mirror still becomes two pages: the address is no part of it.
"""

from collections import OrderedDict
from threading import Lock

from xxhash import xxh3_128_digest

from dedup_service.core.extraction import Extraction, extract

__all__ = ["ExtractionCache"]

Key = tuple[bytes, bool, str | None]


class ExtractionCache:
    """Least recently used extractions.

    max_bodies: extractions kept; 0 switches the memory off. max_text_chars: characters of main text kept in all.
    hits, misses: counted since the start.
    """

    def __init__(self, max_bodies: int = 4096, max_text_chars: int = 8 << 20) -> None:
        self._max_bodies = max_bodies
        self._max_text_chars = max_text_chars
        self._kept: OrderedDict[Key, Extraction] = OrderedDict()
        self._text_chars = 0
        self._lock = Lock()
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._kept)

    def extract(self, html: bytes | str, *, declared_encoding: str | None = None) -> Extraction:
        """Return what extraction says of the body, from memory where it has been asked before."""
        key = _key(html, declared_encoding)
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
                self.hits += 1
                return known
        extraction = extract(html, declared_encoding=declared_encoding)
        with self._lock:
            self.misses += 1
            self._keep(key, extraction)
        return extraction

    def _keep(self, key: Key, extraction: Extraction) -> None:
        if key not in self._kept:
            self._text_chars += len(extraction.text)
        self._kept[key] = extraction
        while self._kept and (len(self._kept) > self._max_bodies or self._text_chars > self._max_text_chars):
            _, dropped = self._kept.popitem(last=False)
            self._text_chars -= len(dropped.text)


def _key(html: bytes | str, declared_encoding: str | None) -> Key:
    """Bytes and text apart: the same characters may have been decoded in two ways."""
    is_bytes = isinstance(html, bytes)
    data = html if isinstance(html, bytes) else html.encode("utf-8", "surrogatepass")
    return xxh3_128_digest(data), is_bytes, declared_encoding if is_bytes else None
