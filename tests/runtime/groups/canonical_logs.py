"""Logs for tests of canonical pages, and what `twinsieve groups` says of them."""

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import fmean

from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.groups.canonical import CanonicalPolicy, policy_of_log
from dedup_service.core.groups.grouping import grouped
from dedup_service.core.log_records import (
    CorrectionRecord,
    LogRecord,
    PageRecord,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    Source,
    UnwrittenRecord,
    first_offset,
    sequence_at,
)
from dedup_service.core.url import host_hash
from dedup_service.runtime.groups.log_groups import LogGroups
from dedup_service.runtime.groups.spool import group_spool
from dedup_service.runtime.kafka.messages.log_record import numbered
from tests.page_names import NamesInMemory
from tests.runtime.kafka.state.list_log import ListLog, first, page

POLICIES = "earliest", "longest", "complete", "hosts:b.example,c.example"


@dataclass(frozen=True)
class LoggedMessage:
    """A message of the log as a reader returns it."""

    offset: int
    value: bytes
    timestamp: int


class TimedLog(ListLog):
    """A `ListLog` whose messages have times, and which may be closed. Its end may be set, to grow later."""

    def __init__(self, records: Sequence[LogRecord], *, together: bool = False) -> None:
        begun = records[0]
        based_on = begun.policy.based_on if isinstance(begun, PolicyRecord) else 0
        super().__init__(records, together=together, first=first_offset(based_on))
        self.messages = [LoggedMessage(one.offset, one.value, 1000 * one.offset) for one in self.records]
        self.records = list(self.messages)  # type: ignore[arg-type]

    def close(self) -> None:
        """Nothing is open."""


def with_policy(canonical: str, begun: PolicyRecord | None = None) -> PolicyRecord:
    """A record that changes the policy of canonical pages alone. begun: the first record of the log."""
    return PolicyRecord(replace((begun or first()).policy, canonical=canonical))


def generated_log(rng: random.Random, count: int, begun: PolicyRecord | None = None) -> list[LogRecord]:
    """A log of few stories at few URLs, some of them again, with what operators and the service add.

    begun: its first record.
    """
    begun = begun or first()
    log: list[LogRecord] = [begun]
    offset_0 = first_offset(begun.policy.based_on)

    def url() -> str:
        return f"http://{rng.choice('abc')}.example/{rng.randrange(12)}"

    for offset in range(count):
        match rng.randrange(24):
            case 0 | 1:
                log.append(RetractionRecord(url(), "gone"))
            case 2:
                log.append(CorrectionRecord(url(), url(), rng.random() < 0.7, "said so"))
            case 3:
                log.append(UnwrittenRecord((sequence_at(offset_0 + 2 * rng.randrange(len(log))),), "refused"))
            case 4:
                log.append(RejectedRecord(Source("pages", 0, offset), "no page"))
            case 5:
                log.append(with_policy(rng.choice(POLICIES), begun))
            case 6:
                log.append(page(rng.randrange(offset + 1), url(), 1))  # perhaps a delivery that the log has
            case _:
                log.append(page(offset, url(), rng.randrange(10), rng.randrange(3)))
    return log


def expected_choices(messages: Sequence[LoggedMessage], replica: Replica | None = None) -> dict[int, int]:
    """What the topic has after some messages, by `groups`: the page that stands for each group that is listed.

    Listed are groups with pages of several URLs, and those for which another page stands than the one that began them.
    The own text of a host is what was known before the message of the page. A policy that is not known chooses nothing.
    replica: before the first record.
    """
    policy: CanonicalPolicy | None = None
    choices: dict[int, int] = {}
    shares: dict[int, float] = {}
    with group_spool(with_sentences=False) as spool:
        groups = LogGroups(Replica(NamesInMemory()) if replica is None else replica, spool)
        for message in messages:
            records = numbered([message])  # type: ignore[list-item]
            host_text = groups.replica.host_text()
            for sequence, record in records:
                if isinstance(record, PageRecord):
                    url, sentences = (
                        record.prepared.page.canonical_url,
                        Evidence(record.prepared.evidence).sentence_values,
                    )
                    shares[sequence] = fmean(host_text.common(host_hash(url), sentences))
            groups.take([(message.timestamp, *pair) for pair in records])
            with suppress(ConfigurationError):
                policy = policy_of_log(groups.replica.policy.canonical) if groups.replica.policy else None
        if policy is None:
            return {}
        members = (
            (group, replace(member, host_sentences=shares[member.sequence])) for group, member in spool.members()
        )
        for group in grouped(members, policy):
            has_copy = len({member.canonical_url for member in group.members}) > 1
            if group.canonical is not None and (has_copy or group.canonical.sequence != group.sequence):
                choices[group.sequence] = group.canonical.sequence
    return choices
