"""A service's folder whose process is killed: what the process does, as a function of a seed.

`python -m tests.runtime.kafka.state.killed` is a nursery. For each line of its input, a folder and a seed, it forks a
process that restores the folder from a log in memory, with a snapshot every few records, and prints the process id. So
a process begins within milliseconds. It ends by itself, and is killed, too, when it has read the whole log.
"""

import os
import random
import signal
import sys
from dataclasses import replace
from pathlib import Path

from dedup_service.core.log_records import LogRecord, PolicyRecord, RetractionRecord, TimeRecord
from dedup_service.core.rules.keep import Keep
from dedup_service.runtime.kafka.state import restore as restore_module
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.restore import restore

from .list_log import ListLog, first, page

RECORDS = 800
SNAPSHOT_EVERY = 20
BATCH = 7


def records_of(seed: int) -> list[LogRecord]:
    """Return a log: pages with copies, updates, retractions, and entries that expire."""
    chosen = random.Random(seed)
    policy = PolicyRecord(replace(first().policy, keep=Keep(max_pages=300)), initial=True, log="a-log")
    found: list[LogRecord] = [policy]
    for number in range(RECORDS):
        match chosen.randrange(20):
            case 0:
                found.append(RetractionRecord(f"u{chosen.randrange(number + 1)}", "gone"))
            case 1:
                found.append(TimeRecord(1_000 + number))
            case _:
                url = f"u{number if chosen.random() < 0.8 else chosen.randrange(number + 1)}"
                found.append(page(number, url, chosen.randrange(RECORDS), chosen.randrange(3)))
    return found


def run(folder: Path, log: ListLog) -> None:
    """Restore the folder, with a snapshot now and then."""
    restore_module.MESSAGES_AT_ONCE = BATCH  # more instants to be killed at
    with LocalState.open(folder, snapshot_every=SNAPSHOT_EVERY) as local:
        restore(local, log, {})
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Fork a process for each line of the input."""
    with LocalState.open(sys.argv[1]) as local:
        restore(local, ListLog(records_of(0)), {})
    logs: dict[str, ListLog] = {}
    for line in sys.stdin:
        folder, seed = line.split()
        log = logs.setdefault(seed, logs.get(seed) or ListLog(records_of(int(seed))))
        child = os.fork()
        if not child:
            run(Path(folder), log)
        os.write(1, f"pid {child}\n".encode())
        os.waitpid(child, 0)
        os.write(1, b"dead\n")


if __name__ == "__main__":
    main()
