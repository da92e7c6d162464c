"""Messages between shards and resolver: answers in `candidates`, outcomes in `outcomes`. MessagePack with a version.

An answer is bytes that depend on the answer alone, so replicas of a shard write the same ones. It is cut into messages
of MAX_PART_BYTES; each says which shard it is of, which log, and which message of the log it answers to.

What is in an answer the native code reads and writes (`native/src/decider/wire.rs`). The fields of the structs are the
names on the wire; renaming one changes the format. Another version is refused with StateError.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec

from dedup_service.core.errors import StateError
from dedup_service.core.shards.answers import MessageAnswer
from dedup_service.core.shards.outcomes import EntryRemoval, MessageOutcome
from dedup_service.core.shards.shard import ShardNumber

_VERSION = 2

MAX_PART_BYTES = 448 << 10
"""Of an answer in one message: a topic takes twice as much."""


_Place = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
"""A sequence or an ordinal."""


class _Answer(msgspec.Struct, array_like=True):
    """See `MessageAnswer`. names: sequence, id and URL of each entry; nil for an id that is equal to the URL."""

    first: int
    batches: list[bytes]
    record: bytes | None
    oldest: bytes
    is_all: bool
    names: list[tuple[int, str | None, str]]


class AnswerPart(msgspec.Struct):
    """Part number `part` of `parts` of the answer of shard I/S to the message at `offset` of a log."""

    v: int
    log: str
    shard: int
    shards: int
    offset: int
    part: int
    parts: int
    answer: bytes

    @property
    def number(self) -> ShardNumber:
        """That of the shard."""
        return ShardNumber(self.shard, self.shards)


class _Outcome(msgspec.Struct):
    """See `MessageOutcome`. Each removal is an array."""

    v: int
    log: str
    offset: int
    first: int
    kept: bytes
    removed: tuple[tuple[_Place, _Place, _Place], ...]


_encoder = msgspec.msgpack.Encoder()
_answers = msgspec.msgpack.Decoder(_Answer)
_parts = msgspec.msgpack.Decoder(AnswerPart)
_outcomes = msgspec.msgpack.Decoder(_Outcome)


def answer_parts(answer: MessageAnswer, number: ShardNumber, log: str) -> Iterator[bytes]:
    """Yield the message values of an answer, in order."""
    names = [(sequence, None if name == url else name, url) for sequence, (name, url) in answer.names.items()]
    batches = list(answer.batches)
    value = _encoder.encode(_Answer(answer.first, batches, answer.record, answer.oldest, answer.is_all, names))
    count = max(1, -(-len(value) // MAX_PART_BYTES))
    for part in range(count):
        piece = value[part * MAX_PART_BYTES : (part + 1) * MAX_PART_BYTES]
        yield _encoder.encode(AnswerPart(_VERSION, log, number.index, number.of, answer.offset, part, count, piece))


def decode_answer_part(value: bytes | None) -> AnswerPart:
    """Return a part of an answer; StateError for anything else."""
    part: AnswerPart = _decoded(_parts, value, "an answer of a shard")
    if not (0 <= part.part < part.parts and part.offset >= 0 and 1 <= part.shard <= part.shards):
        raise StateError("a message of `candidates` is no answer of a shard: its numbers are out of range")
    return part


def decode_answer(offset: int, parts: Sequence[bytes]) -> MessageAnswer:
    """Return the answer to the message of the log at `offset` whose parts these are; StateError for other bytes."""
    try:
        fields = _answers.decode(b"".join(parts))
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise StateError(f"an answer of a shard to message {offset} of the log cannot be read: {error}") from error
    names = {sequence: (url if name is None else name, url) for sequence, name, url in fields.names}
    batches = tuple(fields.batches)
    return MessageAnswer(offset, fields.first, batches, fields.record, fields.oldest, fields.is_all, names)


def encode_outcome(outcome: MessageOutcome, log: str) -> bytes:
    """Return the message value of an outcome. log: identity of the log."""
    return _encoder.encode(_Outcome(_VERSION, log, outcome.offset, outcome.first, outcome.kept, outcome.removed))


def decode_outcome(value: bytes | None) -> tuple[str, MessageOutcome]:
    """Return the identity of a log, and the outcome; StateError for anything else."""
    fields = _decoded(_outcomes, value, "an outcome")
    removed = tuple(map(EntryRemoval._make, fields.removed))
    return fields.log, MessageOutcome(fields.offset, fields.first, fields.kept, removed)


def _decoded(decoder: Any, value: bytes | None, what: str) -> Any:
    try:
        fields = decoder.decode(value or b"")
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise StateError(f"a message is not {what}: {error}; is the --prefix right?") from error
    if fields.v != _VERSION:
        raise StateError(f"{what} has version {fields.v}, this twinsieve reads {_VERSION}: update all processes")
    return fields
