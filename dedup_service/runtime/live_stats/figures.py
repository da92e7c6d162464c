"""All that a feed has, as values for JSON: the answers of `/api/stats`. docs/feed.md tells of every field."""

from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from dedup_service.core.evaluation.scoring import Share
from dedup_service.runtime.live_stats.display_safe import shown
from dedup_service.runtime.live_stats.live_stats import SCORE_STEP, LiveStats
from dedup_service.runtime.live_stats.time_series import TimeSeries
from dedup_service.runtime.live_stats.top_k import TopK

__all__ = ["VERSION", "stats", "summary"]

VERSION = 1
WINDOW_S = 10
LISTED = 20
BLOCK_KEYS = 1 << 16

PROGRAM = version("twinsieve")


def stats(feed: LiveStats, *, history: bool = True) -> dict[str, Any]:
    """Return everything; without the two rings where `history` is false."""
    feed.refresh_index()
    found: dict[str, Any] = {"version": VERSION, "summary": summary(feed)}
    with feed.lock:
        if history:
            now = feed.clock()
            found["history"] = {"hour": _history(feed.hour, now), "day": _history(feed.day, now)}
        found["distances"] = {
            **{channel: list(bits) for channel, bits in feed.distances.items()},
            "without": dict(feed.no_distance),
        }
        found["scores"] = {"step": SCORE_STEP, "counts": list(feed.scores), "without": feed.no_score}
        found["hosts"] = _hosts(feed.hosts)
        found["groups"] = _groups(feed)
        found["latency"] = _latency(feed)
        found["index"] = _index(feed)
        found["false_drops"] = _false_drops(feed)
    return found


def summary(feed: LiveStats) -> dict[str, Any]:
    """Return what every tick tells: the state in few figures."""
    now = feed.clock()
    pool = feed.pool()
    connected, dropped = feed.watchers()
    with feed.lock:
        return {
            "at": round(now, 3),
            "started_at": round(feed.started_at, 3),
            "mode": feed.mode,
            "scope": feed.scope,
            "space": feed.space,
            "program": PROGRAM,
            "pages": sum(feed.verdicts.values()),
            "verdicts": {kind.value: count for kind, count in feed.verdicts.items()},
            "guarded": {guard.value: count for guard, count in feed.guarded.items()},
            "rejected": max(feed.rejected.values(), default=0),
            "repeated": feed.repeated,
            "problems": dict(feed.problems),
            "rates": _rates(feed, now),
            "lag": {
                step: {"records": sum(lag.values()), "partitions": dict(lag)} for step, lag in feed.lag.items() if lag
            },
            "entries": feed.entries,
            "pool": None if pool is None else asdict(pool),
            "watchers": {"connected": connected, "dropped": dropped, "last_event": feed.events.last_id},
        }


def _rates(feed: LiveStats, now: float) -> dict[str, Any]:
    feed.hour.move(now)
    window = max(1, min(WINDOW_S, feed.hour.newest_s - int(feed.started_at)))
    pages, duplicates, errors = (sum(kind) for kind in zip(*feed.hour.last(window), strict=True))
    return {
        "window_s": window,
        "pages": round(pages / window, 2),
        "duplicates": round(duplicates / window, 2),
        "errors": round(errors / window, 2),
        "duplicate_share": round(duplicates / pages, 4) if pages else None,
    }


def _history(ring: TimeSeries, now: float) -> dict[str, Any]:
    ring.move(now)
    pages, duplicates, errors = ring.all()
    return {"step_s": ring.step_s, "start": ring.start_s, "pages": pages, "duplicates": duplicates, "errors": errors}


def _hosts(hosts: TopK[tuple[str, str]]) -> dict[str, Any]:
    pairs = [
        {"source": source, "copy": copy, "pages": top.count, "at_most_over": top.at_most_over}
        for top in hosts.top(LISTED)
        for source, copy in [top.thing]
    ]
    return {"pairs": pairs, "over": hosts.over}


def _groups(feed: LiveStats) -> dict[str, Any]:
    largest = [
        {
            "url": shown(top.thing),
            "title": shown(feed.title_of(top.thing)),
            "pages": top.count,
            "at_most_over": top.at_most_over,
        }
        for top in feed.groups.top(LISTED)
    ]
    return {"largest": largest, "over": feed.groups.over}


def _latency(feed: LiveStats) -> list[dict[str, Any]]:
    now = feed.clock()
    rows = []
    for (step, part), spread in sorted(feed.latency.items()):
        spread.turn(now)
        p50, p99 = spread.quantile(0.5), spread.quantile(0.99)
        rows.append(
            {
                "step": step,
                "part": part,
                "batches": spread.count,
                "seconds": round(spread.seconds, 6),
                "p50_s": None if p50 is None else round(p50, 6),
                "p99_s": None if p99 is None else round(p99, 6),
                "page_s": round(spread.seconds / feed.records[step], 8) if feed.records[step] else None,
            }
        )
    return rows


def _index(feed: LiveStats) -> dict[str, Any] | None:
    fact = feed.indexes
    if fact is None:
        return None
    channels = {}
    for name, channel in fact.channels.items():
        average = max(1.0, channel.fingerprints / BLOCK_KEYS)
        channels[name] = {
            "fingerprints": channel.fingerprints,
            "largest_bucket": channel.largest_bucket,
            "average_bucket": round(average, 2),
            "skew": round(channel.largest_bucket / average, 2),
            "split_buckets": channel.split_buckets,
            "bytes": channel.bytes,
        }
    keys = None if fact.keys is None else {"entries": fact.keys[0], "bytes": fact.keys[1]}
    removals = {**feed.removals, "updated": feed.updated}
    return {
        "entries": fact.entries,
        "bytes": fact.size_bytes,
        "channels": channels,
        "keys": keys,
        "removals": removals,
    }


def _false_drops(feed: LiveStats) -> dict[str, Any]:
    share = Share(feed.wrong, feed.checked)
    low, high = share.interval
    known = feed.checked > 0
    wrong = [
        {**checked.row.shown(), "jaccard": round(checked.jaccard, 4), "containment": round(checked.containment, 4)}
        for checked in reversed(feed.newest_wrong)
    ]
    return {
        "sampled": feed.drawn,
        "checked": feed.checked,
        "wrong": feed.wrong,
        "share": round(share.value, 4) if known else None,
        "low": round(low, 4) if known else None,
        "high": round(high, 4) if known else None,
        "unchecked": feed.unchecked,
        "sample": 0.0 if feed.sampler is None else feed.sampler.share,
        "newest_wrong": wrong,
    }
