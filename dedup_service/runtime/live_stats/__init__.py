"""What the facts add up to, in bounded memory, for whoever asks: no HTTP, no files, no broker.

`Feed` is the observer; `figures` says what it has as values for JSON, `events` keeps what is told live. `rates`,
`frequent`, `spread` and `newest` are its memory; `checking` compares a share of the duplicates again.
"""

from dedup_service.runtime.live_stats.live_stats import LiveStats

__all__ = ["LiveStats"]
