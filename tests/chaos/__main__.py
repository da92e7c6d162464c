"""Claim: under faults, every page is answered exactly once, with the verdict of a sequential oracle.

    python -m tests.chaos [--rounds 50] [--seed 1] [--folder build/chaos] [--pages 2000] [--outputs verdicts]
        [--again N] [--shards 4 --replicas 2]

Each round starts Apache Kafka (one node, or three in a fifth of the rounds), three `twinsieve serve`
processes and a stream of generated pages with known truth. It kills, freezes, restarts and damages at random
(tests/chaos). After the faults it reads every topic with `read_committed` and compares it with the
oracle byte for byte, with the records that were sent, and with the known truth of the stream. One round in
the middle has at least 20,000 pages. In a fifth of the rounds, or all with --outputs verdicts, pages stay in `pages`
(`serve --outputs verdicts`).

With --shards, fingerprinters, shards with replicas and resolvers take the place of services, and the round has
faults of these (tests/chaos/shard_faults.py); no process may end with an error. Such a round needs more than
512 pages if its messages are not small (tests/chaos/small_messages.py).

A round is a function of its seed, which is printed, except for the machine's timing. FOLDER/progress-….json
counts the good rounds, so the same command continues after the last one. --again N repeats round N; --short
runs a small round with the usual faults. A round that fails ends the run; its folder (history, logs, state
folders) is kept.
"""

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from dedup_service.runtime.kafka.topics import OutputMode
from tests.chaos.broker_faults import kill_broker
from tests.chaos.faults import freeze_service, kill_pool, kill_service, lose_snapshot, move_group_offsets
from tests.chaos.page_faults import expire_pages, hostile_records
from tests.chaos.rounds import Plan, Result, run_round
from tests.chaos.shard_faults import freeze_shard, kill_resolver, kill_shard, lose_folder, old_folder
from tests.chaos.shard_processes import ShardPlan

BIG_PAGES, BIG_SECONDS = 20_000, 40.0


SHORT = Plan(
    seed="short",
    pages=800,
    brokers=1,
    rate=80,
    services=2,
    service_faults=(kill_service, kill_pool, freeze_service, lose_snapshot, move_group_offsets),
    broker_faults=(kill_broker,),
    page_faults=(hostile_records, expire_pages),
    pause_s=1.5,
)

SHORT_SHARDED = Plan(
    seed="short",
    pages=800,
    brokers=1,
    rate=80,
    service_faults=(kill_shard, kill_resolver, old_folder, freeze_shard, lose_folder),
    broker_faults=(kill_broker,),
    pause_s=1.0,
    sharded=ShardPlan(2, 2),
)


def plan_of(number: int, arguments: argparse.Namespace) -> Plan:
    """Return the plan of a round, counted from 1; 0 is the short round."""
    plan = drawn_plan(number, arguments)
    return plan if arguments.outputs is None else replace(plan, outputs=OutputMode(arguments.outputs))


def drawn_plan(number: int, arguments: argparse.Namespace) -> Plan:
    """Return what its seed says of a round."""
    if arguments.shards is not None:
        return sharded_plan(number, arguments)
    if number == 0:
        return SHORT
    seed = f"{arguments.seed}/{number}"
    if number == max(1, arguments.rounds // 2):
        return Plan.draw(seed, max(BIG_PAGES, arguments.pages), seconds=BIG_SECONDS)
    return Plan.draw(seed, arguments.pages)


def sharded_plan(number: int, arguments: argparse.Namespace) -> Plan:
    """Return the plan of a round with shards."""
    if number == 0:
        return replace(SHORT_SHARDED, sharded=ShardPlan(arguments.shards, arguments.replicas))
    return Plan.draw_sharded(f"{arguments.seed}/{number}", arguments.pages, arguments.shards, arguments.replicas)


def run(number: int, arguments: argparse.Namespace) -> Result:
    """Run a round and print its result; remove its folder if the round was good."""
    plan = plan_of(number, arguments)
    folder = arguments.folder / f"round-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    result = run_round(plan, folder)
    counts = " ".join(f"{name}={count}" for name, count in sorted(result.counts.items()))
    faults = ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in sorted(result.faults.items()))
    print(
        f"round {number} seed {plan.seed}: {result.seconds:.0f} s, {plan.brokers} broker(s), {plan.outputs}; {faults}; "
        f"{counts}",
        flush=True,
    )
    for crash in result.crashes:
        print(f"  {crash}", flush=True)
    for complaint in result.complaints:
        print(f"  {complaint[:1000]}", flush=True)
    if result.complaints:
        print(f"  kept: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def main() -> None:
    """Run the remaining rounds and print their totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--folder", type=Path, default=Path("build/chaos"))
    parser.add_argument("--pages", type=int, default=2000, help="pages of a round (default: 2000)")
    parser.add_argument("--outputs", choices=list(OutputMode), help="of all rounds (default: as each seed says)")
    parser.add_argument("--shards", type=int, help="divide the index among so many shards (default: whole services)")
    parser.add_argument("--replicas", type=int, default=2, help="of each shard (default: 2)")
    alone = parser.add_mutually_exclusive_group()
    alone.add_argument("--again", type=int, metavar="N", help="run only round N, without recording progress")
    alone.add_argument("--short", action="store_const", const=0, dest="again", help="run only a small round")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.again is not None:
        sys.exit(1 if run(arguments.again, arguments).complaints else 0)
    kind = "" if arguments.outputs is None else f"-{arguments.outputs}"
    kind += "" if arguments.shards is None else f"-{arguments.shards}x{arguments.replicas}"
    progress = arguments.folder / f"progress-{arguments.seed}-{arguments.pages}{kind}.json"
    done: dict[str, Any] = {"rounds": 0, "counts": {}, "faults": {}}
    if progress.exists():
        done = json.loads(progress.read_text())
    counts: Counter[str] = Counter(done["counts"])
    faults: Counter[str] = Counter(done["faults"])
    began = time.monotonic()
    for number in range(done["rounds"] + 1, arguments.rounds + 1):
        result = run(number, arguments)
        if result.complaints:
            sys.exit(1)
        counts.update(result.counts)
        faults.update(result.faults)
        progress.write_text(json.dumps({"rounds": number, "counts": counts, "faults": faults}))
    print(f"{arguments.rounds} good rounds, seed {arguments.seed}; this run took {time.monotonic() - began:.0f} s")
    print("records:", dict(sorted(counts.items())))
    print("faults:", dict(sorted(faults.items())))


if __name__ == "__main__":
    main()
