"""The outputs of a record of `pages`: the messages that the deciding step writes for it.

A page: its verdict, and, unless the action drops it, the page itself (value, key and headers, with ours
added) to `pages.unique` or `pages.duplicate`. A rejected record: a dead letter in `pages.dlq`, with the
reason.

Where only verdicts are written (`OutputMode.VERDICTS`), the page stays in `pages`, and its verdict says where.

A page that cannot be written is a dead letter instead, and the stream goes on (`Form`). Two things lead to
that. The log has a page that is larger than what is accepted now, because an earlier version accepted it. Or
a topic refuses a message, because somebody lowered its limit while the service was running: the step asks
for the next form of that record until one is written. Each form is smaller, and the last one has nothing of
the record but its place.

Invariant: outputs of the form PAGE fit `PAGE_MESSAGE_BYTES` and `EVENT_MESSAGE_BYTES` (`core.size_limits`)
whatever the record is, before and after compression; `topics.check` requires these limits of the topics.
"""

from collections.abc import Iterator
from enum import IntEnum

from dedup_service.core.decision.replica import DELETED_UNREAD
from dedup_service.core.log_records import Source
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.kafka.client.connect import ConsumerRecord
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.messages.headers import passed_on, verdict_headers
from dedup_service.runtime.kafka.messages.page import CUT_BYTES, CUT_KEY_BYTES, dead_letter, size_problem
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome
from dedup_service.runtime.kafka.topics import Topics

STORED_KINDS = frozenset({VerdictKind.UNIQUE, VerdictKind.UPDATED, VerdictKind.UNDECIDED})
"""Verdicts whose pages go to `pages.unique`, from which a store is fed.

`unchanged` pages go to `pages.duplicate`: the store already has that body from an earlier visit.
"""


class Form(IntEnum):
    """How much of a record is written, in the order in which it is tried.

    Attributes:
        PAGE: Everything: the ordinary outputs.
        DEAD_LETTER: A dead letter instead of the page; the verdict as usual. A rejected record has that form
            from the start.
        CUT: As DEAD_LETTER, with the beginning of value and key only (1 MiB, 1 KiB), and without headers.
        BARE: Only a dead letter, with nothing of the record but its place; not even the verdict.
    """

    PAGE = 0
    DEAD_LETTER = 1
    CUT = 2
    BARE = 3

    def smaller(self, outcome: PendingOutcome) -> "Form | None":
        """Return the next form to try for the record of `outcome`; None after the last one."""
        if self is Form.BARE:
            return None
        return Form(self + 1) if outcome.kind is not None or self is not Form.PAGE else Form.CUT


_LIMITS = {
    Form.CUT: {"max_value_bytes": CUT_BYTES, "max_key_bytes": CUT_KEY_BYTES, "max_headers": 0},
    Form.BARE: {"max_value_bytes": 0, "max_key_bytes": 0, "max_headers": 0},
}


def outputs_of(
    topics: Topics, record: ConsumerRecord, outcome: PendingOutcome, form: Form = Form.PAGE, reason: str = ""
) -> Iterator[Message]:
    """Yield the messages to write for the consumed `record`.

    form: the form to write, if a topic has refused the one before (`Form.smaller`). reason: why it did.
    """
    if outcome.kind is None:
        yield _dead_letter(topics, record, outcome, form, outcome.value.decode("utf-8", "replace"))
        return
    source = Source(record.topic, record.partition, record.offset)
    if form < Form.BARE:
        yield _verdict(topics, source, outcome)
        if outcome.drop:
            return
        if form is Form.PAGE and (problem := size_problem(record)) is not None:
            form, reason = Form.DEAD_LETTER, problem
    if form > Form.PAGE:
        yield _dead_letter(topics, record, outcome, form, f"the page was not passed on: {reason}")
        return
    target = topics.unique if outcome.kind in STORED_KINDS else topics.duplicate
    headers = passed_on(
        record.headers, source, outcome.sequence, verdict=outcome.kind, original_url=outcome.original_url
    )
    yield Message(target, record.value, outcome.key if record.key is None else record.key, headers)


def lost_output(topics: Topics, source: Source, outcome: PendingOutcome) -> Message:
    """Return the dead letter for an input record that was deleted before it could be written."""
    error = "the page was not passed on: it was deleted before it could be; give `pages` a longer retention"
    if outcome.kind is None:
        error = outcome.value.decode("utf-8", "replace")
        if not error.endswith(DELETED_UNREAD):
            # Why it was rejected alone would not say why the dead letter is empty.
            error = f"the record was deleted before it could be kept here: {error}"
    return _empty_letter(topics, source, outcome, error)


def verdict_output(
    topics: Topics, source: Source, outcome: PendingOutcome, form: Form = Form.PAGE, reason: str = ""
) -> Message:
    """Return the message to write for a page that stays in `pages`: its verdict, a dead letter if that is refused."""
    if form is Form.PAGE:
        return _verdict(topics, source, outcome)
    return _empty_letter(topics, source, outcome, f"the verdict was not written: {reason}")


def _verdict(topics: Topics, source: Source, outcome: PendingOutcome) -> Message:
    return Message(topics.verdicts, outcome.value, outcome.key, verdict_headers(source, topics.verdicts))


def _empty_letter(topics: Topics, source: Source, outcome: PendingOutcome, error: str) -> Message:
    headers = passed_on((), source, outcome.sequence, verdict=outcome.kind, error=error)
    return Message(topics.dlq, None, outcome.key or None, headers)


def _dead_letter(topics: Topics, record: ConsumerRecord, outcome: PendingOutcome, form: Form, error: str) -> Message:
    key, value, headers = dead_letter(record, outcome.sequence, error, verdict=outcome.kind, **_LIMITS.get(form, {}))
    return Message(topics.dlq, value, key, headers)
