"""The records of the log, as values.

The log decides everything: Kafka's single-partition topic `fingerprints`. A message has one record, or those of
many pages; a record's sequence is made of the offset of its message and its place there (`sequence_at`). All readers
that apply the records in order have the same state and give the same verdicts (`core.decision.replica`); nothing else
changes a verdict. `runtime.kafka.messages.log_record` converts records to bytes and back.
"""

from dataclasses import dataclass

from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import DEFAULT_LAYOUT, IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action

_PLACE_BITS = 12
MAX_PLACES = 1 << _PLACE_BITS
"""Records that one message of the log may have."""


def sequence_at(offset: int, place: int = 0) -> int:
    """Return the sequence of a record: of a message of the log, by its offset, the record at a place.

    >>> sequence_at(3), sequence_at(3, 17)
    (12288, 12305)
    """
    return offset << _PLACE_BITS | place


def offset_of(sequence: int) -> int:
    """Return the offset of the message that has the record; -1, before the first one, for -1."""
    return sequence >> _PLACE_BITS


def first_offset(based_on: int) -> int:
    """Return what the first message of a log is numbered. based_on: the last sequence of its bases; 0: it has none.

    All records of the log come after those of its bases, so the numbers of its messages are their offsets in the topic
    and this one (`LogConsumer.number_from`).

    >>> first_offset(0), first_offset(1), sequence_at(first_offset(4096))
    (0, 1, 8192)
    """
    return offset_of(based_on) + 1 if based_on else 0


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """The place of an input record. The same source again is the same delivery again.

    Of a page of a file: a topic that only its backfill has (`backfill_topic`), the number of the file in the backfill,
    from 1, and the place of the record in the file, from 0.
    """

    topic: str
    partition: int
    offset: int


_BACKFILL, _REPORTED = "backfill:", "backfill+verdicts:"
"""How the topic of a page of a file begins; no topic of Kafka has a colon in its name."""


def backfill_topic(name: str, key: str, *, reported: bool) -> str:
    """Return the topic of the sources of a backfill's pages, whose partitions are its files, by number.

    key: that no other backfill has, so that pages of two of the same name are never taken for each other. reported:
    whether verdicts on its pages are written.

    >>> backfill_topic("2024", "1f9a", reported=False)
    'backfill:2024:1f9a'
    """
    return f"{_REPORTED if reported else _BACKFILL}{name}:{key}"


def is_backfilled(topic: str) -> bool:
    """Whether the pages of this topic came from files, through a backfill."""
    return topic.startswith((_BACKFILL, _REPORTED))


def is_reported(topic: str) -> bool:
    """Whether verdicts on the pages of this topic are written: on all but those of backfills that want none."""
    return not topic.startswith(_BACKFILL)


@dataclass(frozen=True, slots=True)
class LogBase:
    """A base of a log: a state as it was when the log was begun (`core.decision.bases`).

    name: as it was given. log: identity of its journal. after: what is added to its sequences;
    records: the last of them that counts; commit: digest of that record. entries: kept pages that others are compared
    with.
    """

    name: str
    log: str
    commit: str
    after: int
    records: int
    entries: int


@dataclass(frozen=True, slots=True)
class Policy:
    """What decides besides the pages.

    space_id: of all fingerprints compared. layout: of the index. bases: what the log goes on from. A log never changes
    these three. keep: bounds of expiry; a log that names none keeps all. lowered: the bounds that a limit on memory has
    lowered to `keep`; none if they are what people asked for. canonical: which page stands for a group
    (`core.groups.canonical`); it decides no verdict.
    """

    rule: MatchRule
    action: Action
    space_id: str
    layout: IndexLayout = DEFAULT_LAYOUT
    keep: Keep = KEEP_ALL
    lowered: Keep = KEEP_ALL
    bases: tuple[LogBase, ...] = ()
    canonical: str = "earliest"

    @property
    def based_on(self) -> int:
        """The last sequence of the bases, 0 without any."""
        return self.bases[-1].after + self.bases[-1].records if self.bases else 0

    def continues(self, earlier: "Policy") -> bool:
        """Whether this policy may follow an earlier one in a log: it has the same space, layout and bases."""
        return (self.space_id, self.layout, self.bases) == (earlier.space_id, earlier.layout, earlier.bases)


@dataclass(frozen=True, slots=True)
class PageRecord:
    """A page with its fingerprints of space `space_id`. Its text is "" here and stays in the input topic."""

    source: Source
    prepared: PreparedPage
    space_id: str


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """An input record that is not a page. problem: why it was rejected."""

    source: Source
    problem: str


@dataclass(frozen=True, slots=True)
class ExpiredRecord:
    """Input records that were deleted before they were read: they have no page and never will.

    source: the first of them. end: offset after the last one, in the same partition.
    """

    source: Source
    end: int


@dataclass(frozen=True, slots=True)
class UnwrittenRecord:
    """Pages of the log that were never passed on and never will be, or pages that a base has retracted.

    Their entries are removed: no store has them, so the next copy must not be called a duplicate. sequences: of their
    records in the log, earlier than this one, or of pages of a base. reason: why they were not passed on.
    """

    sequences: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A message of the log that is not a record; it has no effect. problem: why it cannot be read."""

    problem: str


@dataclass(frozen=True, slots=True)
class TimeRecord:
    """The time, in minutes since 1970, for the pages that follow; no effect if the log had it, or a later one."""

    minute: int


@dataclass(frozen=True, slots=True)
class RetractionRecord:
    """Removes the kept page of canonical URL `url`: it was never stored, or it was taken down."""

    url: str
    reason: str


@dataclass(frozen=True, slots=True)
class CorrectionRecord:
    """A person's statement that two pages are duplicates or are not.

    It takes precedence over rule and guards until a later correction of the same pair.

    Attributes:
        url: Canonical URL of the page that is judged.
        original: Canonical URL of the page that it is compared with.
        duplicate: True if `url` is a duplicate of `original`, False if it is not.
        reason: Why, in the person's words.

    Example:
        >>> CorrectionRecord("https://b.example/copy", "https://a.example/story", True, "same story").duplicate
        True
    """

    url: str
    original: str
    duplicate: bool
    reason: str


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """Puts `policy` in force from here on.

    Attributes:
        policy: The policy.
        initial: Void if a policy is in force; if several services start on an empty log, the first record wins.
        log: The identity of the log, on an initial record; None on any other.
        group: The consumer group whose service writes the outputs, on an initial record. None: any.
        pages: The identity of the input topic (Kafka's topic id), on an initial record. None: unknown.
        offsets: The identity of the topic with the steps' offsets, likewise.
        begins: Where each partition of the input topic began, as an offset, when the log was begun; a partition that
            was added later begins at 0. On an initial record. None: unknown.
        replaces: Sequence of the policy record that this one replaces: void if another one is in force by then.
            None replaces any.
    """

    policy: Policy
    initial: bool = False
    log: str | None = None
    group: str | None = None
    pages: str | None = None
    offsets: str | None = None
    begins: tuple[int, ...] | None = None
    replaces: int | None = None

    def is_void(self, in_force: Policy | None, since: int) -> bool:
        """Whether the record changes nothing, because another policy is in force.

        An initial one never replaces another. One of another space or layout, or with other bases, would stop all
        readers permanently.
        One that `replaces` a policy which is no longer in force was decided on by somebody who did not know of
        the change in between.

        Args:
            in_force: The policy in force before this record, None if there is none: then nothing is void.
            since: Sequence of the record that put it in force.
        """
        return in_force is not None and (
            self.initial or not self.policy.continues(in_force) or self.replaces not in {None, since}
        )


@dataclass(frozen=True, slots=True)
class BackfillRecord:
    """Says which file the sources of a backfill's pages are of; no effect. Comes before the first page of the file.

    source: topic and partition of these sources; offset 0. name: of the file.
    """

    source: Source
    name: str


@dataclass(frozen=True, slots=True)
class LayoutRecord:
    """The layout of the index for a log that begins with it; the first policy, which follows, takes it."""

    layout: IndexLayout


LogRecord = (
    PageRecord
    | RejectedRecord
    | ExpiredRecord
    | UnwrittenRecord
    | UnreadableRecord
    | TimeRecord
    | RetractionRecord
    | CorrectionRecord
    | PolicyRecord
    | LayoutRecord
    | BackfillRecord
)
