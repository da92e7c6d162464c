"""Decide some made-up pages on an empty replica, so that no page of the service waits for machine code.

A kernel is compiled, or loaded from the cache, when it is called first, in the thread that calls it. Few pages at a
time take other kernels than many, and the cells get their first pages 4,096 pages after the start. Without this a
service stood still at that point: for 0.5 and 0.9 s where it had to compile, else 2 to 40 ms for each kernel.
Invariant: nothing of it is kept but machine code.
"""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

from dedup_service.core.decision.replica import Replica
from dedup_service.core.fingerprinter import Fingerprinter
from dedup_service.core.log_records import LogRecord, PageRecord, Policy, PolicyRecord, Source
from dedup_service.core.page import Page
from dedup_service.runtime.kafka.messages.log_record import log_messages, log_parts

_BATCHES = (1, 1, 2, 5, 12, 30, 120, 1, 5, 12)
"""Pages that are decided at a time: few and many, into an empty index and into one with pages."""

_WINDOW = 8
"""Pages by which the cells lag behind: so few that they get some of these, as later after the usual 4,096."""

_LETTERS = 400
_TOPIC = "warm-up"


def load_kernels(fingerprinter: Fingerprinter, policy: Policy) -> int:
    """Return how many pages were decided. policy: of the log; `fingerprinter` is of its space."""
    policy = replace(policy, layout=replace(policy.layout, window=_WINDOW))
    replica = Replica(_NoNames())
    records: list[list[LogRecord]] = [[PolicyRecord(policy, initial=True, log=_TOPIC)]]
    records += [list(batch) for batch in _batches(fingerprinter, policy.space_id)]
    decided = offset = 0
    for batch in records:
        messages = [message for message, _ in log_messages(_TOPIC, batch)]
        consumed = [
            SimpleNamespace(offset=at, value=message.value, headers=message.headers)
            for at, message in enumerate(messages, offset)
        ]
        offset += len(messages)
        decided += len(replica.apply_parts(log_parts(consumed)))
    return decided


class _NoNames:
    """Names of pages that nobody asks for again."""

    def name(self, sequence: int) -> tuple[str, str]:
        return "", f"https://warm-up.invalid/{sequence}"

    def add(self, sequence: int, page_id: str, url: str) -> None:
        """Keep nothing."""

    def erase(self, sequence: int) -> None:
        """Keep nothing."""


def _batches(fingerprinter: Fingerprinter, space_id: str) -> Iterator[Iterator[LogRecord]]:
    number = 0
    for size in _BATCHES:
        pages = [_page(at) for at in range(number, number + size)]
        prepared = fingerprinter.prepare_all(pages)
        yield (PageRecord(Source(_TOPIC, 0, at), page, space_id) for at, page in enumerate(prepared, number))
        number += size


def _page(number: int) -> Page:
    """Return page `number`: every third has the text of the one before, with another last sentence."""
    story = number - (number % 3 == 2)
    letters: list[str] = []
    state = story * 2654435761 + 1
    for at in range(_LETTERS):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        letters.append(chr(0x4E00 + (state >> 33) % 3000) + "。" * (at % 25 == 24))
    url = f"https://warm-up.invalid/{number}"
    return Page(url=url, canonical_url=url, id=url, title=f"{number}", text="".join(letters) + f"第{number}页。")
