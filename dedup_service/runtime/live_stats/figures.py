"""Live statistics as values for JSON: the answers of `/api/stats`. docs/feed.md describes every field."""

from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from dedup_service.core.evaluation.share import Share
from dedup_service.runtime.live_stats.display_safe import shown
from dedup_service.runtime.live_stats.live_stats import SCORE_STEP, LiveStats
from dedup_service.runtime.live_stats.time_series import TimeSeries
from dedup_service.runtime.live_stats.top_k import TopK

VERSION = 1
WINDOW_S = 10
LISTED = 20

PROGRAM = version("twinsieve")


def stats(live_stats: LiveStats, *, history: bool = True) -> dict[str, Any]:
    """Return all figures; without the two time series if `history` is false."""
    live_stats.refresh_index()
    figures: dict[str, Any] = {"version": VERSION, "summary": summary(live_stats)}
    with live_stats.lock:
        if history:
            now = live_stats.clock()
            figures["history"] = {"hour": _history(live_stats.hour, now), "day": _history(live_stats.day, now)}
        figures["distances"] = {
            **{channel: list(bits) for channel, bits in live_stats.distances.items()},
            "without": dict(live_stats.no_distance),
        }
        figures["scores"] = {"step": SCORE_STEP, "counts": list(live_stats.scores), "without": live_stats.no_score}
        figures["hosts"] = _hosts(live_stats.hosts)
        figures["groups"] = _groups(live_stats)
        figures["latency"] = _latency(live_stats)
        figures["index"] = _index(live_stats)
        figures["false_drops"] = _false_drops(live_stats)
        figures["newest_problems"] = list(live_stats.newest_problems)
    return figures


def summary(live_stats: LiveStats) -> dict[str, Any]:
    """Return the summary that every tick sends."""
    now = live_stats.clock()
    pool = live_stats.pool()
    lags, lag_age_s = live_stats.lag(), live_stats.lag_age_s()
    processes = live_stats.processes()
    not_ready = shown(live_stats.not_ready())
    connected, dropped = live_stats.watchers()
    with live_stats.lock:
        return {
            "at": round(now, 3),
            "started_at": round(live_stats.started_at, 3),
            "mode": live_stats.mode,
            "scope": live_stats.scope,
            "space": live_stats.space,
            "program": PROGRAM,
            "pages": sum(live_stats.verdicts.values()),
            "verdicts": {kind.value: count for kind, count in live_stats.verdicts.items()},
            "before": live_stats.before,
            "guarded": {guard.value: count for guard, count in live_stats.guarded.items()},
            "claim_refused": live_stats.claim_refused,
            "rejected": max(live_stats.rejected.values(), default=0),
            "repeated": live_stats.repeated,
            "problems": dict(live_stats.problems),
            "rates": _rates(live_stats, now),
            "lag": {step: {"records": sum(lag.values()), "partitions": dict(lag)} for step, lag in lags.items() if lag},
            "lag_age_s": None if lag_age_s is None else round(lag_age_s, 1),
            "processes": processes,
            "not_ready": not_ready,
            "entries": live_stats.entries,
            "pool": None if pool is None else asdict(pool),
            "watchers": {"connected": connected, "dropped": dropped, "last_event": live_stats.events.last_id},
        }


def _rates(live_stats: LiveStats, now: float) -> dict[str, Any]:
    live_stats.hour.advance(now)
    window = max(1, min(WINDOW_S, live_stats.hour.newest_s - int(live_stats.started_at)))
    pages, duplicates, errors = (sum(kind) for kind in zip(*live_stats.hour.last(window), strict=True))
    return {
        "window_s": window,
        "pages": round(pages / window, 2),
        "duplicates": round(duplicates / window, 2),
        "errors": round(errors / window, 2),
        "duplicate_share": round(duplicates / pages, 4) if pages else None,
    }


def _history(series: TimeSeries, now: float) -> dict[str, Any]:
    series.advance(now)
    pages, duplicates, errors = series.all()
    return {
        "step_s": series.step_s,
        "start": series.start_s,
        "pages": pages,
        "duplicates": duplicates,
        "errors": errors,
    }


def _hosts(hosts: TopK[tuple[str, str]]) -> dict[str, Any]:
    pairs = [
        {"source": source, "copy": copy, "pages": top.count, "at_most_over": top.max_error}
        for top in hosts.top(LISTED)
        for source, copy in [top.item]
    ]
    return {"pairs": pairs, "over": hosts.over}


def _groups(live_stats: LiveStats) -> dict[str, Any]:
    largest = [
        {
            "url": shown(top.item),
            "title": shown(live_stats.title_of(top.item)),
            "pages": top.count,
            "at_most_over": top.max_error,
        }
        for top in live_stats.groups.top(LISTED)
    ]
    return {"largest": largest, "over": live_stats.groups.over}


def _latency(live_stats: LiveStats) -> list[dict[str, Any]]:
    now = live_stats.clock()
    rows = []
    for (step, part), histogram in sorted(live_stats.latency.items()):
        histogram.rotate(now)
        p50, p99 = histogram.quantile(0.5), histogram.quantile(0.99)
        rows.append(
            {
                "step": step,
                "part": part,
                "batches": histogram.count,
                "seconds": round(histogram.seconds, 6),
                "p50_s": None if p50 is None else round(p50, 6),
                "p99_s": None if p99 is None else round(p99, 6),
                "page_s": round(histogram.seconds / live_stats.records[step], 8) if live_stats.records[step] else None,
            }
        )
    return rows


def _index(live_stats: LiveStats) -> dict[str, Any] | None:
    sizes = live_stats.indexes
    if sizes is None:
        return None
    channels = {}
    for name, channel in sizes.channels.items():
        average = max(1.0, channel.fingerprints / channel.buckets)
        channels[name] = {
            "fingerprints": channel.fingerprints,
            "largest_bucket": channel.largest_bucket,
            "average_bucket": round(average, 2),
            "skew": round(channel.largest_bucket / average, 2),
            "split_buckets": channel.split_buckets,
            "bytes": channel.bytes,
        }
    cells = None if sizes.cells is None else asdict(sizes.cells)
    expired = {f"expired by {reason}": count for reason, count in live_stats.expired.items()}
    removals = {**live_stats.removals, "updated": live_stats.updated, **expired}
    return {
        "entries": sizes.entries,
        "bytes": sizes.size_bytes,
        "channels": channels,
        "cells": cells,
        "removals": removals,
    }


def _false_drops(live_stats: LiveStats) -> dict[str, Any]:
    share = Share(live_stats.wrong, live_stats.checked)
    low, high = share.interval
    known = live_stats.checked > 0
    wrong = [
        {**result.row.shown(), "jaccard": round(result.jaccard, 4), "containment": round(result.containment, 4)}
        for result in reversed(live_stats.newest_wrong)
    ]
    return {
        "sampled": live_stats.drawn,
        "checked": live_stats.checked,
        "wrong": live_stats.wrong,
        "share": round(share.value, 4) if known else None,
        "low": round(low, 4) if known else None,
        "high": round(high, 4) if known else None,
        "unchecked": live_stats.unchecked,
        "sample": 0.0 if live_stats.sampler is None else live_stats.sampler.share,
        "newest_wrong": wrong,
    }
