"""Claim: a page that lets another expire costs little more than one that does not, and a backlog stops nothing.

    python -m benchmarks.expiry [--kept 1000000] [--pages 50000]

A decider is filled with generated pages that are all far apart (tests.known_log), with evidence of a pool of
generated texts and random keys, under the rule of distance: the cost of finding is small, that of adding and removing
is the real one. Then it decides --pages more in batches, three times:

    all       all pages are kept
    count     the earliest page leaves for each page that is kept
    backlog   the bound was lowered to a tenth: nine pages leave with each one

One process, one thread, the clock of the processor; nothing is written. Data: seed 2026.
"""

import argparse
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import numpy as np
from rich.console import Console
from rich.table import Table

from dedup_service.core.decision.decider import Decider
from dedup_service.core.evidence.keys import LEVELS, PARTS
from dedup_service.core.evidence.packed import pack_evidence
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.guards import NO_GUARDS
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.text.normalise import letters
from dedup_service.core.verdict import VerdictKind
from tests.known_log import SPACE_ID, role
from tests.known_log import pages as known_pages

BATCH = 128
POOL = 500


class Names:
    """Names that no verdict of these pages asks for."""

    def name(self, sequence: int) -> tuple[str, str]:
        """Return a name made of the sequence."""
        return str(sequence), str(sequence)


def prepared() -> Iterator[list[tuple[int, PreparedPage]]]:
    """Yield batches of new pages with their sequences, without end."""
    chosen, noise = random.Random(2026), np.random.default_rng(2026)
    texts = ["".join(chr(chosen.randrange(0x4E00, 0x9000)) for _ in range(900)) for _ in range(POOL)]
    pool = [pack_evidence("", text, letters(text), b"") for text in texts]
    size = PARTS * LEVELS * 4
    numbers = (number for number in count(1) if role(number) is VerdictKind.UNIQUE)
    while True:
        keys = noise.bytes(BATCH * size)
        batch = []
        for at in range(BATCH):
            sequence = next(numbers)
            (record,) = known_pages(sequence, sequence + 1)
            page = replace(record.prepared, evidence=pool[sequence % POOL], keys=keys[at * size : (at + 1) * size])
            batch.append((sequence, page))
        yield batch


def decide(decider: Decider, batches: Iterator[list[tuple[int, PreparedPage]]], pages: int) -> list[float]:
    """Decide `pages` pages and return the processor seconds of each batch."""
    seconds = []
    for _ in range(0, pages, BATCH):
        batch = next(batches)
        began = time.process_time()
        with decider.batch(batch):
            for page in batch:
                assert decider.decide(*page).verdict.kind is VerdictKind.UNIQUE
        seconds.append(time.process_time() - began)
    return seconds


def main() -> None:
    """Fill a decider, measure, and print a table."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--kept", type=int, default=1_000_000)
    arguments.add_argument("--pages", type=int, default=50_000)
    given = arguments.parse_args()
    decider = Decider(replace(rule_for("both"), guards=NO_GUARDS), SPACE_ID, Names())
    batches = prepared()
    decide(decider, batches, given.kept)
    table = Table(title=f"{len(decider):,} kept pages", title_justify="left")
    for column in ("bounds", "µs a page", "p99 of a batch, ms", "most, ms", "expired a page", "µs an expired page"):
        table.add_column(column, justify="right")
    alone = 0.0
    for name, share_kept in (("all", None), ("count", 1.0), ("backlog", 0.1)):
        decider.expiry.keep = KEEP_ALL if share_kept is None else Keep(max_pages=int(share_kept * len(decider)))
        before = sum(decider.expiry.expired.values())
        seconds = decide(decider, batches, given.pages)
        expired = sum(decider.expiry.expired.values()) - before
        page_us = 1e6 * sum(seconds) / (len(seconds) * BATCH)
        alone = alone or page_us
        share = expired / (len(seconds) * BATCH)
        each = f"{(page_us - alone) / share:.1f}" if share else ""
        p99, most = 1e3 * float(np.quantile(seconds, 0.99)), 1e3 * max(seconds)
        table.add_row(name, f"{page_us:.1f}", f"{p99:.1f}", f"{most:.1f}", f"{share:.2f}", each)
    Console().print(table)


if __name__ == "__main__":
    main()
