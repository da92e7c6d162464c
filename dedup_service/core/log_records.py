"""The records of the log that decides everything, as values.

Kafka's single-partition topic `fingerprints` holds them, one a message, and a record's offset is its sequence.
Whoever reads them in order has the same state and gives the same verdicts (`core.decision.replica`); nothing else
changes a verdict. How they are written as bytes is `runtime.kafka.messages.log_record`'s affair.
"""

from dataclasses import dataclass

from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action

__all__ = [
    "CorrectionRecord",
    "LogRecord",
    "PageRecord",
    "Policy",
    "PolicyRecord",
    "RejectedRecord",
    "RetractionRecord",
    "Source",
]


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """Where an input record stands; the same source again is the same delivery again."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Policy:
    """What decides beside the pages. space_id: of every fingerprint compared; a log has one for good."""

    rule: MatchRule
    action: Action
    space_id: str


@dataclass(frozen=True, slots=True)
class PageRecord:
    """A page with its fingerprint, as made in space `space_id`; its text stays where it came from and is "" here."""

    source: Source
    prepared: PreparedPage
    space_id: str


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """An input record that describes no page, and why."""

    source: Source
    problem: str


@dataclass(frozen=True, slots=True)
class RetractionRecord:
    """The kept page of canonical URL `url` leaves: it was never stored, or it was taken down."""

    url: str
    reason: str


@dataclass(frozen=True, slots=True)
class CorrectionRecord:
    """A person's judgement of two pages, by canonical URL: `url` is a duplicate of `of`, or is none of it."""

    url: str
    original: str
    duplicate: bool
    reason: str


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """`policy` holds from here on.

    initial: only where none is in force: several services may start on an empty log, the first one wins.
    log: on an initial record, the identity that the log takes with it; None on any other.
    """

    policy: Policy
    initial: bool = False
    log: str | None = None


LogRecord = PageRecord | RejectedRecord | RetractionRecord | CorrectionRecord | PolicyRecord
