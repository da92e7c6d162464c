"""Messages between shards and resolver: answers in `candidates`, outcomes in `outcomes`. MessagePack with a version.

An answer is bytes that depend on the answer alone, so replicas of a shard write the same ones. It is cut into messages
of MAX_PART_BYTES; each says which shard it is of, which log, and which message of the log it answers to.

Arrays are little-endian. The fields of the structs are the names on the wire; renaming one changes the format. Another
version is refused with StateError.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entry_rows import ROW, EntryRows
from dedup_service.core.errors import StateError
from dedup_service.core.shards.answers import NEAR, OLDEST, BatchAnswer, MessageAnswer, RecordAnswer
from dedup_service.core.shards.outcomes import REMOVAL, MessageOutcome
from dedup_service.core.shards.shard import ShardNumber

_VERSION = 1

MAX_PART_BYTES = 448 << 10
"""Of an answer in one message: a topic takes twice as much."""


class _Entries(msgspec.Struct, array_like=True):
    """rows: ROW[n]. evidence: of all, end to end. ids: nil if equal to the URL."""

    rows: bytes
    evidence: bytes
    ids: list[str | None]
    urls: list[str]


class _Batch(msgspec.Struct, array_like=True):
    """See `BatchAnswer`. pages, places, looked_at and those of hashes: uint32. by_cells: uint8. near: NEAR."""

    entries: _Entries
    pages: bytes
    places: bytes
    by_cells: bytes
    near: bytes
    hashes: list[tuple[bytes, bytes]]
    looked_at: bytes


class _Answer(msgspec.Struct, array_like=True):
    """See `MessageAnswer`. oldest: OLDEST[n]."""

    first: int
    batches: list[_Batch]
    record: _Entries | None
    oldest: bytes
    is_all: bool


class _Part(msgspec.Struct):
    """Part number `part` of `parts` of the answer of shard I/S to the message of the log at `offset`."""

    v: int
    log: str
    shard: int
    shards: int
    offset: int
    part: int
    parts: int
    answer: bytes


class _Outcome(msgspec.Struct):
    """See `MessageOutcome`. kept: a bit a page, the first in the highest bit; removed: REMOVAL[n]."""

    v: int
    log: str
    offset: int
    first: int
    pages: int
    kept: bytes
    removed: bytes


_encoder = msgspec.msgpack.Encoder()
_answers = msgspec.msgpack.Decoder(_Answer)
_parts = msgspec.msgpack.Decoder(_Part)
_outcomes = msgspec.msgpack.Decoder(_Outcome)


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """A part of an answer. number: of the shard; log: identity of the log; offset: of the message answered to."""

    number: ShardNumber
    log: str
    offset: int
    part: int
    parts: int
    answer: bytes


def answer_parts(answer: MessageAnswer, number: ShardNumber, log: str) -> Iterator[bytes]:
    """Yield the message values of an answer, in order."""
    batches = [_encoded_batch(batch) for batch in answer.batches]
    record = None if answer.record is None else _encoded_entries(answer.record.entries, answer.record.names)
    value = _encoder.encode(_Answer(answer.first, batches, record, answer.oldest.tobytes(), answer.is_all))
    count = max(1, -(-len(value) // MAX_PART_BYTES))
    for part in range(count):
        piece = value[part * MAX_PART_BYTES : (part + 1) * MAX_PART_BYTES]
        yield _encoder.encode(_Part(_VERSION, log, number.index, number.of, answer.offset, part, count, piece))


def decode_answer_part(value: bytes | None) -> AnswerPart:
    """Return a part of an answer; StateError for anything else."""
    part = _decoded(_parts, value, "an answer of a shard")
    if not (0 <= part.part < part.parts and part.offset >= 0):
        raise StateError("a message of `candidates` is no answer of a shard: its numbers are out of range")
    return AnswerPart(ShardNumber(part.shard, part.shards), part.log, part.offset, part.part, part.parts, part.answer)


def decode_answer(offset: int, parts: Sequence[bytes]) -> MessageAnswer:
    """Return the answer to the message of the log at `offset` whose parts these are; StateError for other bytes."""
    try:
        fields = _answers.decode(b"".join(parts))
        batches = [_decoded_batch(batch) for batch in fields.batches]
        record = None if fields.record is None else RecordAnswer(*_decoded_entries(fields.record))
        return MessageAnswer(offset, fields.first, batches, record, np.frombuffer(fields.oldest, OLDEST), fields.is_all)
    except (ValueError, msgspec.MsgspecError) as error:
        raise StateError(f"an answer of a shard to message {offset} of the log cannot be read: {error}") from error


def encode_outcome(outcome: MessageOutcome, log: str) -> bytes:
    """Return the message value of an outcome. log: identity of the log."""
    kept = np.packbits(outcome.kept).tobytes()
    return _encoder.encode(
        _Outcome(_VERSION, log, outcome.offset, outcome.first, len(outcome.kept), kept, outcome.removed.tobytes())
    )


def decode_outcome(value: bytes | None) -> tuple[str, MessageOutcome]:
    """Return the identity of a log, and the outcome; StateError for anything else."""
    fields = _decoded(_outcomes, value, "an outcome")
    if len(fields.kept) != -(-fields.pages // 8):
        raise StateError(f"an outcome of message {fields.offset} of the log does not have the {fields.pages} pages")
    try:
        kept = np.unpackbits(np.frombuffer(fields.kept, np.uint8), count=fields.pages).astype(np.bool_)
        return fields.log, MessageOutcome(fields.offset, fields.first, kept, np.frombuffer(fields.removed, REMOVAL))
    except ValueError as error:
        raise StateError(f"an outcome of message {fields.offset} of the log cannot be read: {error}") from error


def _decoded(decoder: Any, value: bytes | None, what: str) -> Any:
    try:
        fields = decoder.decode(value or b"")
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise StateError(f"a message is not {what}: {error}; is the --prefix right?") from error
    if fields.v != _VERSION:
        raise StateError(f"{what} has version {fields.v}, this twinsieve reads {_VERSION}: update all processes")
    return fields


def _encoded_entries(entries: EntryRows, names: Sequence[tuple[str, str]]) -> _Entries:
    ids = [None if page_id == url else page_id for page_id, url in names]
    return _Entries(entries.rows.tobytes(), entries.evidence, ids, [url for _, url in names])


def _decoded_entries(fields: _Entries) -> tuple[EntryRows, list[tuple[str, str]]]:
    rows = np.frombuffer(fields.rows, ROW)
    if not len(rows) == len(fields.ids) == len(fields.urls):
        raise ValueError(f"{len(rows)} entries have {len(fields.urls)} names")
    if int(rows["evidence_bytes"].sum(dtype=np.int64)) != len(fields.evidence):
        raise ValueError("the evidence of its entries is not of the size that they say")
    names = [(url if page_id is None else page_id, url) for page_id, url in zip(fields.ids, fields.urls, strict=True)]
    return EntryRows(rows, fields.evidence), names


def _encoded_batch(batch: BatchAnswer) -> _Batch:
    return _Batch(
        _encoded_entries(batch.entries, batch.names),
        _small(batch.pages),
        _small(batch.places),
        batch.by_cells.astype(np.uint8).tobytes(),
        batch.near.tobytes(),
        [(_small(pages), _small(places)) for pages, places in batch.hashes],
        _small(batch.looked_at),
    )


def _decoded_batch(fields: _Batch) -> BatchAnswer:
    entries, names = _decoded_entries(fields.entries)
    batch = BatchAnswer(
        entries,
        names,
        _large(fields.pages),
        _large(fields.places),
        np.frombuffer(fields.by_cells, np.uint8).astype(np.bool_),
        np.frombuffer(fields.near, NEAR),
        [(_large(pages), _large(places)) for pages, places in fields.hashes],
        _large(fields.looked_at),
    )
    if not len(batch.pages) == len(batch.places) == len(batch.by_cells):
        raise ValueError("its pairs are not complete")
    places = [batch.places, *(places for _, places in batch.hashes)]
    pages = [batch.pages, *(numbers for numbers, _ in batch.hashes)]
    if any(part.max(initial=-1) >= len(entries) for part in places):
        raise ValueError("it speaks of entries that it does not have")
    if any(part.max(initial=-1) >= len(batch.looked_at) for part in pages):
        raise ValueError("it speaks of pages that the message does not have")
    return batch


def _small(values: npt.NDArray[np.int64]) -> bytes:
    return values.astype("<u4").tobytes()


def _large(value: bytes) -> npt.NDArray[np.int64]:
    return np.frombuffer(value, "<u4").astype(np.int64)
