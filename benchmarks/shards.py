"""Shards: the same bytes as one process, and what each part of the work takes.

    python -m benchmarks.shards equal [FILE …] [--pages 100000] [--shards 1 2 4 8]
    python -m benchmarks.shards speed [--entries 1000000] [--shards 4] [--pages 20000]
    python -m benchmarks.shards kafka [--shards 4] [--pages 24000] [--repeats 1]

`equal` decides logs with one process and with shards and a resolver, and compares the bytes of all verdicts. FILE has
pages in JSON lines; they are published twice, in other batches, and the second time must give the same kinds of
verdicts and the same originals. Beside them: generated logs with corrections, retractions, expiry, updates and
policies, and short, crowded and template pages.

`speed` fills a decider of one process, and the shards, with generated kept pages (`benchmarks.store_pages`), then
decides the same pages, of which every fifth is a copy, in messages of 250, and gives the processor time of each: of one
process, of each shard, of the resolver. Answers and outcomes are encoded and decoded, and no broker is between them.
Memory is that of the structures: tables, and pages that wait.

`kafka` is the same over a broker, on topics of its own, in turn with one process that runs both steps: Chinese text of
2 KB (`benchmarks.service.load`), published at once. After that, at half of the rate of the shards, the time from a
message in the log to its outcome, by the timestamps of both.
"""

import argparse
import hashlib
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.kafka import Bench, Figures
from benchmarks.service.contenders import TwinsieveContender
from benchmarks.service.load import text_pages
from benchmarks.service.sharded import ShardedContender
from benchmarks.store import PREPARED, progress_bar
from benchmarks.store_pages import COPIES, StreamPages
from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.decision.replica import Outcome, Replica
from dedup_service.core.log_records import LogRecord, PageRecord, Policy, PolicyRecord, Source
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.shards.shard import Shard
from dedup_service.core.verdict import Action, VerdictKind
from dedup_service.runtime.kafka.messages.shard_messages import decode_outcome
from dedup_service.runtime.kafka.messages.verdict import verdict_value
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from deploy.kafka import Cluster
from tests.chaos.reading import Tail, read_all
from tests.sharded_run import LOG, LoggedMessage, ShardedRun, decided_alone, messages_of, parts_of

SPACE = "benchmark"
MESSAGE = 250


def first_policy(window: int = 4096, keep: Keep | None = None) -> PolicyRecord:
    """Return the first record of a log."""
    policy = Policy(rule_for(), Action.FLAG, SPACE, IndexLayout(slots=8, window=window), keep or Keep())
    return PolicyRecord(policy, initial=True, log=LOG)


def log_of(pages: Sequence[PreparedPage], most: int, seed: int, keep: Keep | None = None) -> list[LoggedMessage]:
    """Return a log of pages in messages of 1 to `most` records."""
    chosen, batches, at = random.Random(seed), list[list[LogRecord]](), 0
    batches.append([first_policy(keep=keep)])
    while at < len(pages):
        size = chosen.randint(1, most)
        some = enumerate(pages[at : at + size], at)
        batches.append([PageRecord(Source("pages", 0, place), page, SPACE) for place, page in some])
        at += size
    return messages_of(batches)


def value_of(outcome: Outcome) -> bytes:
    """Return the bytes that are written for an outcome."""
    if outcome.verdict is None:
        return (outcome.problem or "").encode()
    return verdict_value(outcome.verdict, outcome.source)


def kind_of(outcome: Outcome) -> tuple[object, ...]:
    """Return what must be the same for the same page in another batch: all but sequences."""
    verdict = outcome.verdict
    if verdict is None:
        return (outcome.problem,)
    return verdict.id, verdict.kind, verdict.duplicate_of, verdict.distance, verdict.score, verdict.reason


def compare(name: str, messages: Sequence[LoggedMessage], shards: Sequence[int]) -> tuple[list[Outcome], bool]:
    """Compare the verdicts of one log; return the outcomes of one process, and whether all were the same."""
    alone = decided_alone(messages)
    values = [value_of(outcome) for outcome in alone]
    kinds = Counter(str(outcome.verdict.kind) for outcome in alone if outcome.verdict is not None)
    digest = hashlib.sha256(b"\n".join(values)).hexdigest()[:16]
    print(f"{name}: {len(values):,} verdicts in {len(messages):,} messages, {digest}; {dict(kinds)}", flush=True)
    good = True
    for number in shards:
        run = ShardedRun(number)
        differ = sum(value_of(one) != value for one, value in zip(run.decide(messages), values, strict=True))
        print(f"  {number} shards: {differ} differ; answers {run.answer_bytes / max(1, len(values)):.0f} bytes a page")
        good &= differ == 0
    return alone, good


def pages_in(path: str) -> list[PreparedPage]:
    """Return the prepared pages of a file."""
    fingerprinter = build_fingerprinter(SpaceOptions())
    with Path(path).open("rb") as lines:
        pages = [page_of(json.loads(line)) for line in lines]
    prepared: list[PreparedPage] = []
    with progress_bar(f"preparing {Path(path).name}", len(pages)) as advance:
        for start in range(0, len(pages), 512):
            batch = fingerprinter.prepare_all(pages[start : start + 512])
            prepared += [replace(one, page=replace(one.page, text="")) for one in batch]
            advance(len(batch))
    return prepared


def page_of(line: dict[str, str]) -> Page:
    """Return the page of a line of JSON."""
    url = line["url"]
    return Page(url=url, canonical_url=url, id=line.get("id", url), title=line.get("title", ""), text=line["text"])


def generated(pages: int, seed: int) -> Iterator[tuple[str, list[LoggedMessage]]]:
    """Yield logs of generated crawls with all that operators do (`tests.oracle.crawl`), by name."""
    from tests.core.shards.test_shards import GUARDED
    from tests.core.shards.test_shards import log_of as crawl_of

    for name, window, keep in (("window 4,096", 4096, None), ("window 256, expiry", 256, Keep(max_pages=pages // 8))):
        batches = list(crawl_of(seed, pages, GUARDED, window, keep, most=MESSAGE))
        yield f"generated, {name}", messages_of(batches)


def crowded(pages: int) -> Iterator[tuple[str, list[LoggedMessage]]]:
    """Yield logs of short, crowded and template pages, by name."""
    from tests.core.decision.crowded import page_at
    from tests.core.decision.test_identical_crowds import of_crowd

    chosen = random.Random(5)
    numbers = [chosen.getrandbits(chosen.choice([5, 16, 32])) for _ in range(pages)]
    for keep in (None, Keep(max_pages=2000)):
        said = "" if keep is None else ", 2,000 kept"
        yield f"crowds of three fingerprints{said}", log_of([of_crowd(number) for number in numbers], MESSAGE, 1, keep)
        yield f"templates and short pages{said}", log_of([page_at(number) for number in numbers], MESSAGE, 2, keep)


def equal(arguments: argparse.Namespace) -> int:
    """Compare verdicts; return the exit code."""
    good = True
    for path in arguments.files:
        pages = pages_in(path)
        first, same = compare(Path(path).name, log_of(pages, MESSAGE, 1), arguments.shards)
        second, also = compare(f"{Path(path).name}, published anew", log_of(pages, 90, 2), arguments.shards)
        differ = sum(kind_of(one) != kind_of(other) for one, other in zip(first, second, strict=True))
        print(f"  first and second time: {differ} differ")
        good &= same and also and differ == 0
    for name, messages in (*generated(arguments.pages, 3), *crowded(arguments.pages // 10)):
        good &= compare(name, messages, arguments.shards)[1]
    return 0 if good else 1


def speed(arguments: argparse.Namespace) -> int:
    """Measure; return the exit code."""
    entries, shards = arguments.entries, arguments.shards[0]
    stream = StreamPages(entries * COPIES // (COPIES - 1) + arguments.pages)
    begin = stream.pages - arguments.pages
    begin -= begin % COPIES
    kept = begin // COPIES * (COPIES - 1)
    head, *rest = messages_of([[first_policy()], *batches_of_stream(stream, begin)])
    later = [LoggedMessage(kept + 1 + place, message.value) for place, message in enumerate(rest)]
    run = ShardedRun(shards, names=NumberNames)
    list(run.decide([head]))
    figures: dict[str, object] = {"shards": shards}
    alone = Replica(NumberNames())
    alone.apply_parts(parts_of(head))
    fill(alone, run.shards, stream, kept)
    filled = DeciderState(ordinal=kept, host_text=alone.state().decider.host_text)
    run.replica = run.resolver(replace(run.replica.state(), decider=filled))
    began = time.thread_time()
    expected = [value_of(one) for message in later for one in alone.apply_parts(parts_of(message))]
    figures["one process, pages/s"] = round(len(expected) / (time.thread_time() - began))
    whole = table_bytes(alone)
    figures["tables of one process, bytes a kept page"] = round(whole / len(alone), 1)
    figures["tables of a shard, share of that"] = [round(table_bytes(shard) / whole, 4) for shard in run.shards]
    run.seconds.clear()
    run.answer_bytes = run.outcome_bytes = 0
    outcomes = list(run.follow(later))
    pages, of_shards = len(outcomes), sum(run.seconds[f"shard {number + 1}"] for number in range(shards))
    found = [value_of(outcome) for outcome in outcomes]
    copies = sum(outcome.verdict is not None and outcome.verdict.kind is VerdictKind.DUPLICATE for outcome in outcomes)
    figures |= {
        "kept pages of each shard": [len(shard) for shard in run.shards],
        "pages decided": pages,
        "copies among them, found": [pages // COPIES, copies],
        "a shard, pages/s": round(pages * shards / of_shards),
        "resolver, pages/s": round(pages / run.seconds["resolver"]),
        "answers of all shards, bytes a page": round(run.answer_bytes / pages, 1),
        "outcomes, bytes a page": round(run.outcome_bytes / pages, 2),
    }
    differ = sum(one != other for one, other in zip(expected, found, strict=True))
    print(json.dumps(figures | {"verdicts that differ": differ}, indent=2))
    return 0 if differ == 0 else 1


def batches_of_stream(stream: StreamPages, begin: int) -> Iterator[list[LogRecord]]:
    """Yield the pages of a stream from `begin` on as the records of messages."""
    for first in range(begin, stream.pages, MESSAGE):
        pages = stream.prepared(first, min(first + MESSAGE, stream.pages))
        yield [PageRecord(Source("pages", 0, first + place), page, SPACE) for place, page in enumerate(pages)]


class NumberNames:
    """Names of generated pages, which are their sequences: so many would take more memory than what is measured."""

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of a page."""
        return str(sequence), f"http://site/{sequence}"

    def add(self, sequence: int, page_id: str, url: str) -> None:
        """Keep nothing."""

    def erase(self, sequence: int) -> None:
        """Keep nothing."""


def table_bytes(part: Replica | Shard) -> int:
    """Return the memory of the tables of a part that has a policy."""
    sizes = part.sizes()
    assert sizes is not None
    return sum(size for name, size in sizes.memory.items() if name not in {"entries", "rows", "host_text", "undecided"})


def fill(alone: Replica, shards: Sequence[Shard], stream: StreamPages, kept: int) -> None:
    """Keep the first texts of a stream, in one process and each in its shard; nothing is looked up for them."""
    assert alone._decider is not None  # noqa: SLF001 - pages without records
    with progress_bar(f"{kept:,} filled in", kept) as advance:
        for start in range(0, kept, PREPARED):
            entries = stream.kept(start, min(start + PREPARED, kept))
            alone._decider.enter(entries)  # noqa: SLF001
            for shard in shards:
                assert shard._entries is not None  # noqa: SLF001
                own = [entry for entry in entries if shard.number.owns(entry.ordinal)]
                shard._entries.keep(own)  # noqa: SLF001
                shard._entries.settle(entries[-1].ordinal + IndexLayout().window)  # noqa: SLF001
            advance(len(entries))
    for shard in shards:
        shard.ordinal = kept


def over_kafka(arguments: argparse.Namespace) -> int:
    """Measure over a broker; return the exit code."""
    shards = arguments.shards[0]
    pages = list(text_pages(2026, arguments.pages))
    figures = {"both steps": Figures(), f"{shards} shards": Figures()}
    with Cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        bench = Bench(cluster, Path(folder))
        for _ in range(arguments.repeats):
            bench.rate(TwinsieveContender(1), pages, figures["both steps"])
            bench.rate(ShardedContender(shards), pages, figures[f"{shards} shards"])
        rates = {name: statistics.median(one.pages_per_s) for name, one in figures.items()}
        rate = rates[f"{shards} shards"] / 2
        latency_ms = outcome_latency(bench, cluster.bootstrap, shards, rate)
    for name, one in figures.items():
        used = {part: round(one.used(part), 3) for part in one.used_s[0]}
        every = [round(rate) for rate in one.pages_per_s]
        print(f"{name}: {rates[name]:,.0f} pages/s {every}; ms a page of processor: {used}")
    p50, p99 = np.quantile(latency_ms, [0.5, 0.99])
    print(f"log to outcome at {rate:,.0f} pages/s: p50 {p50:.0f} ms, p99 {p99:.0f} ms ({len(latency_ms):,} messages)")
    return 0


def outcome_latency(bench: Bench, bootstrap: str, shards: int, rate: float) -> Sequence[float]:
    """Return the milliseconds from each message of the log to its outcome, of pages published at a rate."""
    topics, folder = bench.topics()
    first, pages = list(text_pages(2027, 2000)), list(text_pages(2028, int(20 * rate)))
    bench.publish(topics, first, None)
    contender, tail = ShardedContender(shards), Tail(bootstrap, [topics.verdicts])
    contender.start(bootstrap, topics, folder)
    try:
        await_verdicts(tail, len(first))
        bench.publish(topics, pages, rate)
        await_verdicts(tail, len(pages))
        records = read_all(bootstrap, [topics.fingerprints, topics.outcomes])
    finally:
        contender.stop()
        tail.close()
    logged = {record.offset: record.timestamp for record in records[topics.fingerprints]}
    ends = {decode_outcome(record.value)[1].offset: record.timestamp for record in reversed(records[topics.outcomes])}
    later = sorted(logged)[-int(len(logged) * 0.7) :]
    return [ends[offset] - logged[offset] for offset in later if offset in ends]


def await_verdicts(tail: Tail, count: int) -> None:
    """Wait for so many verdicts."""
    deadline = time.monotonic() + 600
    while count > 0:
        count -= sum(1 for _ in tail.poll())
        if time.monotonic() > deadline:
            raise TimeoutError(f"{count} verdicts are missing after ten minutes")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["equal", "speed", "kafka"])
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--repeats", type=int, default=1)
    arguments = parser.parse_args()
    return {"equal": equal, "speed": speed, "kafka": over_kafka}[arguments.what](arguments)


if __name__ == "__main__":
    sys.exit(main())
