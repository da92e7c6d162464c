"""Live statistics of a filter, in bounded memory; no HTTP, no files, no broker.

`LiveStats` is the observer. `figures` gives its values for JSON, `EventLog` keeps the messages of event streams.
`time_series`, `top_k`, `LatencyHistogram` and `newest` are its data structures; `recheck` compares a sample of the
duplicates again.
"""

from dedup_service.runtime.live_stats.live_stats import LiveStats

__all__ = ["LiveStats"]
