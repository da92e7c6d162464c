"""Records that operators add to a log (policies, retractions, corrections), and its first policy.

The first record of a log, or the second if the topics were made with a layout (`begin_layout`), is a policy, appended
by the first service that starts on the empty log. Several
may try: the first record wins, and the other initial ones are void (`initial`). It also fixes the log's
identity and space. Later records apply from their place in the log on, so every process and every replay
applies them at the same place.

A policy is set by compare-and-set: the record names the policy that it replaces, and is void where another one
is in force by then. So of two people who change the policy at once, the second is told.
A retraction or correction may be in the log twice: a command that was interrupted is repeated as a whole.

Invariants: nothing is added to an empty log except a layout and that first policy. No command uses a log that an
interrupted replay left incomplete (`require_whole`).

Begins the log of a service with bases, before any process does (`policy set --base`).

The first policy of a log names its bases, and no later one does. A process that only makes fingerprints has no bases,
and would begin the log without them.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.groups.canonical import policy_of_log
from dedup_service.core.log_records import (
    CorrectionRecord,
    LayoutRecord,
    LogRecord,
    Policy,
    PolicyRecord,
    RetractionRecord,
    first_offset,
    offset_of,
    sequence_at,
)
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for, rule_text
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.embedded.corrections import Correction, with_force
from dedup_service.runtime.kafka.client.admin import administration
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer, Progress
from dedup_service.runtime.kafka.client.producers import append
from dedup_service.runtime.kafka.messages.log_head import number_log, read_head
from dedup_service.runtime.kafka.messages.log_record import MESSAGES_AT_ONCE, decode, log_message, numbered
from dedup_service.runtime.kafka.messages.page_batch import is_batch
from dedup_service.runtime.kafka.state.mounted_bases import BaseOffer, offered_bases
from dedup_service.runtime.kafka.state.step_offsets import DECIDE, FINGERPRINT, StepOffsets, require_finished
from dedup_service.runtime.kafka.topics import OutputMode, Topics, describe, require_log

_ANSWER_S = 60.0
"""How long a policy that was appended may lie behind open transactions; those of services end within 10 s."""

BY = "twinsieve.by"
"""Header of a record: who added it."""


class ForeignLogError(StateError):
    """The log is of another space, or not a log.

    Use the options that it was begun with, or another --prefix.
    """


class PolicyDiffersError(StateError):
    """The policy in force is not the requested one.

    Leave the options out, or change the log with `policy set`.
    """


class PolicyOvertakenError(StateError):
    """Another policy came into force first, so the requested one is void.

    Look at the policy in force, and repeat the command if it is still wanted.
    """


@dataclass(frozen=True, slots=True)
class RequestedPolicy:
    """The policy that a service was started with; None if it uses that of the log.

    may_be_lower: the log may have lower bounds than `keep` if a limit on memory has lowered them. bases: opens those
    that an empty log begins with; None: it begins without any.
    """

    space_id: str
    rule: MatchRule | None = None
    action: Action | None = None
    keep: Keep | None = None
    may_be_lower: bool = False
    bases: Callable[[], BaseOffer] | None = None

    @property
    def policy(self) -> Policy:
        """The policy that an empty log gets, if it begins without bases."""
        rule, action, keep = self.rule or rule_for(), self.action or Action.FLAG, self.keep or KEEP_ALL
        return Policy(rule, action, self.space_id, keep=keep)

    def first_policy(self, layout: IndexLayout | None) -> Policy:
        """Return the policy that an empty log gets. layout: with which its topics were made, None for any.

        ConfigurationError if its bases have another layout; raises as `bases`.
        """
        if self.bases is None:
            return self.policy if layout is None else replace(self.policy, layout=layout)
        offer = self.bases()
        if layout not in {None, offer.layout}:
            raise ConfigurationError(
                f"the topics were created for {layout}, the base {offer.bases[0].name} has {offer.layout}: create them "
                "without --slots, or with those of the base"
            )
        keep = offer.keep if self.keep is None else self.keep
        action = self.action or Action.FLAG
        return Policy(self.rule or offer.rule, action, self.space_id, offer.layout, keep, bases=offer.bases)


@dataclass(frozen=True, slots=True)
class LogBinding:
    """What a log belongs to: the consumer group of its service, and two topics.

    Its outputs are written once by that group, for the records of that topic `pages`. offsets: identity of the topic
    with the steps' offsets. begins: where each partition of `pages` begins now.
    """

    group: str
    pages: str
    offsets: str
    begins: tuple[int, ...]


def binding_of(
    connection: Connection, topics: Topics, group: str, outputs: OutputMode = OutputMode.PAGES
) -> LogBinding:
    """Return what a log of `topics` that is begun now belongs to; raises as `require_log`.

    group: with its prefix. outputs: what the service writes.
    """
    found = {topic.name: topic.topic_id for topic in require_log(connection, topics, outputs)}
    with administration(connection) as admin:
        beginnings = admin.beginnings(admin.partitions_of([topics.pages]))
    begins = tuple(offset for _, offset in sorted(beginnings.items()))
    return LogBinding(group, found[topics.pages], found[topics.offsets], begins)


def first_policy(
    connection: Connection, topics: Topics, log: LogConsumer, requested: RequestedPolicy, binding: LogBinding
) -> PolicyRecord:
    """Return the first record of the log, appending it to an empty log; `log` is numbered as it says from then on.

    Its `log` is the identity of the log. ForeignLogError if the log is of another space or binding, or does not
    begin with a policy; raises as `require_whole`.
    """
    in_use = require_whole(connection, topics)  # before the log is read: a log that is in use is not empty
    head = read_head(log)
    if head.policy is None and head.others == 0:
        if in_use:
            raise ForeignLogError(
                f"{topics.fingerprints} is empty, but {topics.offsets} has offsets of a log: its topic was deleted "
                f"alone. Remove all topics with the prefix {topics.prefix!r} and create them again, or give another "
                "--prefix"
            )
        policy = requested.first_policy(head.layout)
        begin = PolicyRecord(policy, initial=True, log=uuid.uuid4().hex, **asdict(binding))
        append(connection, topics.fingerprints, [log_message(topics.fingerprints, begin)])
    first = number_log(log).policy
    if first is None or first.log is None:
        raise ForeignLogError(
            f"{topics.fingerprints} does not begin with a policy, so no twinsieve service began it, or its beginning "
            "was deleted: give another --prefix, or create the topics again, with retention.ms and retention.bytes "
            "set to -1"
        )
    if first.policy.space_id != requested.space_id:
        raise ForeignLogError(
            f"{topics.fingerprints} is of space {first.policy.space_id}, but this service makes fingerprints of "
            f"{requested.space_id}: start it with the options that the log was begun with, or begin another log with "
            "--prefix (`twinsieve replay` fills it)"
        )
    require_group(topics, first, binding.group)
    _check_pages(topics, first, binding)
    return first


def begun_with(connection: Connection, topics: Topics, log: LogConsumer) -> PolicyRecord:
    """Return the first policy of a log, which is numbered as it says; UnreachableError if no service has begun it yet.

    That may pass. Raises as `require_whole`.
    """
    require_whole(connection, topics)
    first = number_log(log).policy
    if first is None or first.log is None:
        raise UnreachableError(
            f"{topics.fingerprints} has no policy yet: start the service that decides, which begins the log "
            "(`serve`; with shards, `serve --steps decide --shards`)"
        )
    return first


def require_group(topics: Topics, first: PolicyRecord, group: str) -> None:
    """Raise ForeignLogError if the log that begins with `first` is of another consumer group, with its prefix."""
    if first.group not in {None, group}:
        raise ForeignLogError(
            f"{topics.fingerprints} is the log of group {first.group}, this service is of group {group}: a "
            "second group would write every output again. Start it with the --group of the log; for other outputs "
            "begin another set of topics with --prefix (`twinsieve replay --to-prefix` fills it)"
        )


def _check_pages(topics: Topics, first: PolicyRecord, binding: LogBinding) -> None:
    if first.pages not in {None, binding.pages}:
        raise ForeignLogError(
            f"{topics.pages} was deleted and created again: its identity is {binding.pages}, the log was begun with "
            f"{first.pages}, so its offsets mean other records now. Make a new set with `twinsieve topics create "
            "--prefix NEW` (`twinsieve replay --to-prefix NEW` keeps what is known), and publish and serve with that "
            "prefix"
        )


def check_policy(in_force: Policy, requested: RequestedPolicy) -> None:
    """Raise PolicyDiffersError if rule, action or bounds of the service differ from those of the log."""
    rule, asked = in_force.rule, requested.rule or in_force.rule
    action_differs = requested.action is not None and requested.action is not in_force.action
    keep_differs = requested.keep is not None and requested.keep != in_force.keep
    if requested.may_be_lower and in_force.lowered and requested.keep == in_force.lowered:
        keep_differs = False
    if rule == asked and not action_differs and not keep_differs:
        return
    differences = [
        f"{name} {theirs}, requested is {ours}"
        for differs, name, theirs, ours in (
            (rule != asked, "rule", rule_text(rule), rule_text(asked, than=rule)),
            (action_differs, "action", in_force.action, requested.action),
            (keep_differs, "keep", in_force.keep, requested.keep),
        )
        if differs
    ]
    raise PolicyDiffersError(
        f"the log decides by {'; '.join(differences)}: leave the option out to use the policy of the log, or change it "
        "for all services with `twinsieve policy set`"
    )


def begin_layout(connection: Connection, topics: Topics, layout: IndexLayout) -> bool:
    """Let an empty log begin with a layout; return whether it does so now. True if it was begun with this one.

    ConfigurationError if the log has another one, which never changes; raises as `append`.
    """
    with closing(LogConsumer(connection, topics.fingerprints)) as log:
        head = read_head(log)
        if head.layout is None and head.policy is None and head.others == 0:
            append(connection, topics.fingerprints, [log_message(topics.fingerprints, LayoutRecord(layout))])
            head = read_head(log)  # of several that began at once, the first one counts
    found = head.layout if head.policy is None else head.policy.policy.layout
    if found is None or found.slots != layout.slots:
        has = "no layout" if found is None else f"{found.slots} slots"
        raise ConfigurationError(
            f"the log {topics.fingerprints} was begun with {has}, which never changes: give that number, or another "
            "--prefix for a new log"
        )
    return True


def append_policy(connection: Connection, topics: Topics, record: PolicyRecord) -> int:
    """Append a policy to the log and return its sequence."""
    return _append(connection, topics, [record], first_offset(record.policy.based_on))[0]


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """The policy that decides at the end of the log.

    sequence: of its record. changes: policies that came into force after the first.
    log: the identity of the log. end: the offset up to which the log was read.
    """

    policy: Policy
    sequence: int
    changes: int
    log: str | None
    end: int


def policy_after(before: PolicyInForce | None, sequence: int, record: PolicyRecord) -> PolicyInForce:
    """Return the policy in force after the policy record at `sequence`, as a replica has it.

    before: that in force until then, None before any.
    """
    end = offset_of(sequence) + 1
    if before is None:
        return PolicyInForce(record.policy, sequence, 0, record.log, end)
    if record.is_void(before.policy, before.sequence):
        return replace(before, end=end)
    log = record.log if before.log is None else before.log
    return PolicyInForce(record.policy, sequence, before.changes + 1, log, end)


def policy_in_force(
    connection: Connection, topics: Topics, progress: Progress = lambda _done, _total: None
) -> PolicyInForce:
    """Read the log and return its policy; ForeignLogError if no service has begun it yet.

    Raises as `require_whole`.
    """
    require_whole(connection, topics)
    in_force: PolicyInForce | None = None
    with closing(LogConsumer(connection, topics.fingerprints)) as log:
        number_log(log)
        for batch in log.read_to_end(progress, max_records=MESSAGES_AT_ONCE):
            for sequence, record in _policies(batch):
                in_force = policy_after(in_force, sequence, record)
        end = log.position
    if in_force is None:
        raise _not_begun(topics)
    return replace(in_force, end=end)


def change_policy(
    connection: Connection,
    topics: Topics,
    in_force: PolicyInForce,
    rule: MatchRule | None = None,
    action: Action | None = None,
    keep: Keep | None = None,
    canonical: str | None = None,
) -> tuple[Policy, int] | None:
    """Append the policy in force with another rule, action or bounds, and wait until that is known to be in force.

    canonical: which page stands for a group, as text; ConfigurationError if a log cannot have it.
    Return it and its sequence, None if it is the same. PolicyOvertakenError if another policy came first: the
    record is in the log and void. Raises as `require_log`, `append`; UnreachableError if the record cannot be
    read within 60 s, and then may be in force.
    """
    old = in_force.policy
    kept, lowered = (old.keep, old.lowered) if keep is None else (keep, KEEP_ALL)
    new = replace(old, rule=rule or old.rule, action=action or old.action, keep=kept, lowered=lowered)
    if canonical is not None:
        new = replace(new, canonical=policy_of_log(canonical).text)
    if new == old:
        return None
    require_log(connection, topics, OutputMode.VERDICTS)
    sequence = append_policy(connection, topics, PolicyRecord(new, replaces=in_force.sequence))
    now = _policy_at(connection, topics, in_force, sequence)
    if now.sequence != sequence:
        raise PolicyOvertakenError(
            f"another policy came first, at sequence {now.sequence}: {rule_text(now.policy.rule)}; action "
            f"{now.policy.action.value}. The requested one was to replace that of sequence {in_force.sequence}, so it "
            f"has no effect (its record is at {sequence}): look at the policy in force with `twinsieve policy show`, "
            "and repeat the command if you still want it"
        )
    return new, sequence


def _policy_at(connection: Connection, topics: Topics, before: PolicyInForce, sequence: int) -> PolicyInForce:
    """Read the log on from `before` to the record at `sequence`; return the policy in force there."""
    deadline = time.monotonic() + _ANSWER_S
    with closing(LogConsumer(connection, topics.fingerprints)) as log:
        log.number_from(first_offset(before.policy.based_on))
        log.seek(before.end)
        in_force = before
        for batch in log.read_to_end(max_records=MESSAGES_AT_ONCE, end=offset_of(sequence) + 1):
            for at, record in _policies(batch):
                if at <= sequence:
                    in_force = policy_after(in_force, at, record)
            if not batch and time.monotonic() > deadline:
                raise UnreachableError(
                    f"the policy is in {topics.fingerprints} at {sequence}, but that cannot be read yet, because a "
                    "transaction is open before it: see with `twinsieve policy show` later whether it is in force"
                )
    return in_force


def _policies(batch: Sequence[ConsumerRecord]) -> Iterator[tuple[int, PolicyRecord]]:
    """Yield the policy records of some messages. Those with pages are not decoded: they have nothing else."""
    for sequence, record in numbered(message for message in batch if not is_batch(message.value or b"")):
        if isinstance(record, PolicyRecord):
            yield sequence, record


def add_records(
    connection: Connection,
    topics: Topics,
    records: Sequence[RetractionRecord | CorrectionRecord],
    *,
    by: str | None = None,
) -> list[int]:
    """Append `records` to the log and return the sequence of each.

    ForeignLogError if no service has begun the log; raises as `require_whole`.
    by: the person who adds them; kept in a header, so it changes no verdict.
    """
    require_log(connection, topics, OutputMode.VERDICTS)
    with closing(LogConsumer(connection, topics.fingerprints)) as log:
        require_begun(connection, topics, log)
        first = log.first
    return _append(connection, topics, records, first, by)


def corrections_in(
    connection: Connection, topics: Topics, progress: Progress = lambda _done, _total: None
) -> list[Correction]:
    """Read the log and return the corrections in it, in their order, and which of them are in force."""
    with closing(LogConsumer(connection, topics.fingerprints)) as log:
        require_begun(connection, topics, log)
        batches = log.read_to_end(progress, max_records=MESSAGES_AT_ONCE)
        messages = (message for batch in batches for message in batch if not is_batch(message.value or b""))
        corrections = (correction_of(message, decode(message.value or b"")[0]) for message in messages)
        return with_force(correction for correction in corrections if correction is not None)


def correction_of(message: ConsumerRecord, record: LogRecord) -> Correction | None:
    """Return a record of the log as a correction, with who added it and when.

    None if it is not a correction.
    """
    if not isinstance(record, CorrectionRecord):
        return None
    header = dict(message.headers).get(BY)
    by = None if header is None else header.decode("utf-8", "replace")
    return Correction(sequence=sequence_at(message.offset), record=record, at=message.timestamp / 1000, by=by)


def require_begun(connection: Connection, topics: Topics, log: LogConsumer) -> None:
    """Raise ForeignLogError if `log`, the log of `topics`, has no record yet; raises as `require_whole`.

    Its messages are numbered as its first policy says from then on.
    """
    require_whole(connection, topics)
    head = number_log(log)
    if head.policy is None and head.others == 0:
        raise _not_begun(topics)


def require_same_pages(connection: Connection, topics: Topics, log: LogConsumer) -> None:
    """Raise ForeignLogError if `pages` is not the topic that the log was begun with: its offsets are of other pages."""
    first = read_head(log).policy
    pages = next((topic.topic_id for topic in describe(connection, topics) if topic.name == topics.pages), None)
    if first is not None and first.pages not in {None, pages}:
        raise ForeignLogError(
            f"{topics.pages} was deleted and created again: its identity is {pages}, the log was begun with "
            f"{first.pages}. The pages of the log are gone; its fingerprints can still be replayed (--from log)"
        )


def require_whole(connection: Connection, topics: Topics) -> bool:
    """Raise StateError if `topics` are what a replay left that did not end: every verdict would be another.

    Return whether anybody has used the topics: a step has an offset there, or a replay has filled them.
    ConfigurationError if their topic of offsets is missing, UnreachableError if it cannot be read.
    """
    with administration(connection) as admin:
        if not admin.partitions_of([topics.offsets]):
            prefix = f" --prefix {topics.prefix}" if topics.prefix else ""
            raise ConfigurationError(f"topic {topics.offsets} is missing: run `twinsieve topics create{prefix}`")
    with closing(StepOffsets(connection, topics)) as offsets:
        offsets.refresh()
        require_finished(topics, offsets)
        return bool(offsets.replay or offsets.of(FINGERPRINT) or offsets.of(DECIDE))


def _append(
    connection: Connection,
    topics: Topics,
    records: Sequence[RetractionRecord | CorrectionRecord | PolicyRecord],
    first: int,
    by: str | None = None,
) -> list[int]:
    """Append records and return their sequences. first: what the first message of the log is numbered."""
    log = topics.fingerprints
    headers = () if by is None else ((BY, by.encode("utf-8", "replace")),)
    offsets = append(connection, log, [log_message(log, record, headers) for record in records])
    return [sequence_at(first + offset) for offset in offsets]


def _not_begun(topics: Topics) -> StateError:
    return ForeignLogError(
        f"{topics.fingerprints} is empty: the first `twinsieve serve` begins it with its policy; start one first, or "
        "give the --prefix of the log that you mean"
    )


def begin_with_bases(
    connection: Connection,
    topics: Topics,
    group: str,
    given: Mapping[str, str],
    folder: Path,
    rule: MatchRule | None = None,
    action: Action | None = None,
    keep: Keep | None = None,
) -> PolicyInForce:
    """Let an empty log begin with bases, before any service does; return the policy in force then.

    group: of the service, with its prefix. given: folder or address of each base, by name. folder: for scratch files.
    rule, keep: None takes those of the first base. ConfigurationError if the log has begun otherwise; raises as
    `first_policy` and `offered_bases`.
    """
    offer = offered_bases(given, folder)
    requested = RequestedPolicy(offer.space_id, rule, action, keep, bases=lambda: offer)
    with closing(LogConsumer(connection, topics.fingerprints)) as log:
        binding = binding_of(connection, topics, group, OutputMode.VERDICTS)
        first = first_policy(connection, topics, log, requested, binding)
        asked = requested.first_policy(None)
        if replace(first.policy, action=asked.action if action is None else first.policy.action) != asked:
            names = ", ".join(base.name for base in first.policy.bases)
            begun = f"with the bases {names}" if names else "without bases"
            by = "" if first.policy.rule == asked.rule else f" and by the rule {rule_text(first.policy.rule)}"
            raise ConfigurationError(
                f"{topics.fingerprints} was begun {begun}{by}; bases are given to an empty log alone. "
                "Leave --base out, or begin another log with --prefix"
            )
    return policy_in_force(connection, topics)
