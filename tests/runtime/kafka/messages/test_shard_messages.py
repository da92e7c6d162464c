"""Answers and outcomes as bytes: what is read is what was written, and other bytes are refused."""

from contextlib import suppress
from dataclasses import replace
from functools import cache

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dedup_service import _native
from dedup_service.core.errors import StateError
from dedup_service.core.evidence.keys import LEVELS
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.shards.answers import MessageAnswer
from dedup_service.core.shards.outcomes import EntryRemoval, MessageOutcome
from dedup_service.core.shards.shard import ShardNumber
from dedup_service.runtime.kafka.messages import shard_messages
from dedup_service.runtime.kafka.messages.shard_messages import (
    answer_parts,
    decode_answer,
    decode_answer_part,
    decode_outcome,
    encode_outcome,
)
from tests.core.shards.test_shards import log_of
from tests.sharded_run import LOG, ShardedRun, messages_of

NUMBER = ShardNumber(1, 2)


@cache
def some_answers() -> list[MessageAnswer]:
    """The answers of a shard to a generated crawl, those that have entries."""
    messages = messages_of(list(log_of(4, 200, rule_for(), window=16)))
    answers: list[MessageAnswer] = []
    run = ShardedRun(2)
    answer = run.shards[0].answer

    def kept(**options: bool) -> MessageAnswer:
        answers.append(answer(**options))
        return answers[-1]

    run.shards[0].answer = kept  # type: ignore[method-assign]
    list(run.decide(messages))
    return [one for one in answers if one.batches and one.names]


def test_an_answer_in_parts_is_read_as_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into small parts and put together again, it is written as the same bytes; so are its parts."""
    answers = some_answers()
    assert len(answers) > 5
    whole = [list(answer_parts(answer, NUMBER, LOG)) for answer in answers]
    monkeypatch.setattr(shard_messages, "MAX_PART_BYTES", 100)
    for answer, (value,) in zip(answers, whole, strict=True):
        parts = [decode_answer_part(part) for part in answer_parts(answer, NUMBER, LOG)]
        assert len(parts) > 1
        assert {(part.number, part.log, part.offset, part.parts) for part in parts} == {
            (NUMBER, LOG, answer.offset, len(parts))
        }
        joined = b"".join(part.answer for part in parts)
        assert joined == decode_answer_part(value).answer
        again = decode_answer(answer.offset, [joined])
        assert b"".join(decode_answer_part(part).answer for part in answer_parts(again, NUMBER, LOG)) == joined


@given(
    st.integers(0, 2**60),
    st.integers(0, 2**50),
    st.binary(max_size=40),
    st.lists(st.builds(EntryRemoval, *[st.integers(0, 2**60)] * 3), max_size=4),
)
def test_an_outcome_is_read_as_it_was_written(
    offset: int, first: int, kept: bytes, removed: list[EntryRemoval]
) -> None:
    """Any number of pages and removals, with the identity of the log."""
    outcome = MessageOutcome(offset, first, kept, tuple(removed))
    assert decode_outcome(encode_outcome(outcome, LOG)) == (LOG, outcome)


@given(st.binary(max_size=200))
@example(b"")
@example(msgspec.msgpack.encode({"v": 2}))
def test_other_bytes_are_refused(value: bytes) -> None:
    """Bytes that are no message raise StateError and nothing else."""
    with pytest.raises(StateError):
        decode_answer_part(value)
    with pytest.raises(StateError):
        decode_outcome(value)
    with pytest.raises(StateError):
        decode_answer(7, [value])


@given(st.data())
def test_a_changed_answer_is_read_or_refused(data: st.DataObject) -> None:
    """Altered bytes never raise anything but StateError, whoever reads them."""
    answer = data.draw(st.sampled_from(some_answers()[:4]))
    value = bytearray(b"".join(decode_answer_part(part).answer for part in answer_parts(answer, NUMBER, LOG)))
    for _ in range(data.draw(st.integers(1, 3))):
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    with suppress(StateError):
        read = decode_answer(answer.offset, [bytes(value)])
        resolver = _native.Decider(_native.Rule(rule_for()), window=16, slots=8, levels=LEVELS, answered=(1, 0, None))
        resolver.answer([(read.batches, read.record, read.oldest, read.is_all)])
        for batch in read.batches:
            _native.found_in_answer(batch)


@given(st.data())
def test_pages_of_a_changed_answer_are_decided_or_refused(data: st.DataObject) -> None:
    """A resolver decides the pages of an answer that was altered in one place, or raises StateError."""
    messages = messages_of(list(log_of(4, 60, rule_for(), window=16)))
    run, changed = ShardedRun(1), data.draw(st.integers(0, len(messages)))
    answer = run.shards[0].answer

    def altered(**options: bool) -> MessageAnswer:
        made = answer(**options)
        if made.offset != messages[changed % len(messages)].offset or not made.batches:
            return made
        batch = bytearray(made.batches[0])
        batch[data.draw(st.integers(0, len(batch) - 1))] ^= data.draw(st.integers(1, 255))
        return replace(made, batches=(bytes(batch), *made.batches[1:]))

    run.shards[0].answer = altered  # type: ignore[method-assign]
    with suppress(StateError, KeyError):
        list(run.decide(messages))


def test_an_outcome_of_another_version_says_what_to_do() -> None:
    """A process of another version is told to update all of them."""
    value = encode_outcome(MessageOutcome(1, 0, b""), LOG)
    newer = {**msgspec.msgpack.decode(value), "v": 9}
    with pytest.raises(StateError, match="update all processes"):
        decode_outcome(msgspec.msgpack.encode(newer))
