"""Pages of the log in columns: one message has up to 4,096 input records of one topic and space.

    decode_columns(encode_batch(records)).records() == records

MessagePack, a map of columns; each has one value for each record, in the order in which the records are applied.
Hashes, places and the ends of evidence and keys are arrays of little-endian integers, so a reader need not look at
single values; strings are lists. A record that is not a page has its place and its problem (`reasons`), and nothing in
the other columns. Nothing is compressed here: Kafka compresses whole batches of messages (`compression.type`).

As in JSON (`log_record`), unknown fields are ignored, and a message of which anything does not fit is no batch.
"""

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise

import msgspec

from dedup_service.core.dates import day_of
from dedup_service.core.evidence.keys import MAX_LEVELS, PARTS
from dedup_service.core.log_records import MAX_PLACES, PageRecord, RejectedRecord
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.record_columns import NO_DAY, NO_PERCENT, Hashes, RecordColumns
from dedup_service.core.text.encoding import without_surrogates

VERSION = 3

MAX_TITLE_CHARS = 300
"""Length of the title in the log, for people who read it; no verdict depends on it."""

MAX_PROBLEM_CHARS = 1000

InputRecord = PageRecord | RejectedRecord
"""What a batch has: one for each input record."""

MAX_KEYS_BYTES = 4 * PARTS * MAX_LEVELS
_WORDS, _BODY, _BODY_HASH, _TEXT_HASH, _REJECTED = 1, 2, 4, 8, 16
_FIXED_BYTES = 69
"""Of a record: its places, flags, hashes, ends, day and share, and what MessagePack adds to its strings."""


class BatchColumns(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="pages", omit_defaults=True):
    """A batch of n records.

    topic: of `partitions` and `offsets`, int32[n] and int64[n], the places of the input records. present: uint8[n],
    which of words (1), body (2), body_hash (4) and text_hash (8) a page has, and 16 for a record that is not a page.
    words … text_hashes: uint64[n], 0 where there is none. ids, canonical_urls: nil if equal to the URL. claimed_urls:
    nil if the page names no other address. reasons: why a page cannot be judged or a record is no page, or nil.
    evidence, keys: those of all records, one after the other; …_ends: uint32[n], where each ends. days: int32[n], when
    pages were published, from 1970 on, NO_DAY where it is not known; text_percents: uint8[n], share of main text, or
    NO_PERCENT. Each is missing where no page has one, as in logs that an earlier twinsieve wrote, which ignores both.
    """

    v: int
    topic: str
    space: str
    partitions: bytes
    offsets: bytes
    present: bytes
    words: bytes
    bodies: bytes
    body_hashes: bytes
    text_hashes: bytes
    urls: list[str]
    ids: list[str | None]
    canonical_urls: list[str | None]
    claimed_urls: list[str | None]
    titles: list[str]
    reasons: list[str | None]
    evidence: bytes
    evidence_ends: bytes
    keys: bytes
    keys_ends: bytes
    days: bytes = b""
    text_percents: bytes = b""


_NO_PAGE = PreparedPage(Page(url="", canonical_url="", id=""), Fingerprint(), None)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(BatchColumns)


def is_batch(value: bytes) -> bool:
    """Whether a message of the log begins as a batch does, and no JSON text: with a map of MessagePack."""
    return bool(value) and value[0] >= 0x80


def size_of(record: InputRecord) -> int:
    """Return what the record adds to a batch, in bytes: at most, for strings that UTF-8 can encode."""
    if isinstance(record, RejectedRecord):
        return _FIXED_BYTES + 4 * min(len(record.problem), MAX_PROBLEM_CHARS)
    prepared, page = record.prepared, record.prepared.page
    characters = len(page.url) + min(len(page.title), MAX_TITLE_CHARS) + len(prepared.reason or "")
    characters += len(page.claimed_url or "")
    characters += sum(len(name) for name in (page.id, page.canonical_url) if name != page.url)
    return _FIXED_BYTES + 4 * characters + len(prepared.evidence) + len(prepared.keys)


def encode_batch(records: Sequence[InputRecord]) -> bytes:
    """Return the message value of records of one topic; the pages are of one space. There are 1 to 4,096.

    Never raises for what a record says: lone surrogates become `?`.
    """
    if not 0 < len(records) <= MAX_PLACES:
        raise ValueError(f"a batch of the log has 1 to {MAX_PLACES:,} records, not {len(records):,}")
    sources = [record.source for record in records]
    prepared = [record.prepared if isinstance(record, PageRecord) else _NO_PAGE for record in records]
    (space,) = {record.space_id for record in records if isinstance(record, PageRecord)} or {""}
    (topic,) = {source.topic for source in sources}
    pages = [one.page for one in prepared]
    batch = BatchColumns(
        VERSION,
        topic,
        space,
        _packed("i", [source.partition for source in sources]),
        _packed("q", [source.offset for source in sources]),
        bytes(_REJECTED if one is _NO_PAGE else _present(one) for one in prepared),
        _hashes([one.fingerprint.words for one in prepared]),
        _hashes([one.fingerprint.body for one in prepared]),
        _hashes([one.body_hash for one in prepared]),
        _hashes([one.text_hash for one in prepared]),
        [page.url for page in pages],
        [None if page.id == page.url else page.id for page in pages],
        [None if page.canonical_url == page.url else page.canonical_url for page in pages],
        [page.claimed_url for page in pages],
        [page.title[:MAX_TITLE_CHARS] for page in pages],
        [_reason(record) for record in records],
        b"".join(one.evidence for one in prepared),
        _ends([one.evidence for one in prepared]),
        b"".join(one.keys for one in prepared),
        _ends([one.keys for one in prepared]),
        _known([day_of(page.date) for page in pages], NO_DAY, "i", range(NO_DAY, -NO_DAY)),
        _known([page.text_percent for page in pages], NO_PERCENT, "B", range(NO_PERCENT)),
    )
    try:
        return _encoder.encode(batch)
    except UnicodeEncodeError:  # lone surrogates: not in JSON from a topic, but possible in a caller's string
        return _encoder.encode(_without_surrogates(batch))


def decode_columns(value: bytes, sequence: int = 0) -> RecordColumns:
    """Return the records of a batch of this version; ValueError if the value is none, or anything of it does not fit.

    sequence: of its first record. Raises no other error for any bytes.
    """
    batch = _decoder.decode(value)
    if batch.v != VERSION:
        raise ValueError(f"version {batch.v}")
    count = len(batch.present)
    strings = (batch.urls, batch.ids, batch.canonical_urls, batch.claimed_urls, batch.titles, batch.reasons)
    if not 0 < count <= MAX_PLACES or any(len(column) != count for column in strings):
        raise ValueError("its columns do not have 1 to 4,096 records each")
    partitions, offsets = _integers(batch.partitions, "i", count), _integers(batch.offsets, "q", count)
    if min(partitions) < 0 or min(offsets) < 0:
        raise ValueError("an offset or partition is out of range")
    present = batch.present
    evidence = _pieces(batch.evidence, batch.evidence_ends, count)
    keys = _pieces(batch.keys, batch.keys_ends, count)
    if max(map(len, keys)) > MAX_KEYS_BYTES:
        raise ValueError("its keys are out of range")
    return RecordColumns(
        batch.topic,
        batch.space,
        list(range(sequence, sequence + count)),
        partitions,
        offsets,
        [bool(flags & _REJECTED) for flags in present],
        _present_hashes(present, batch.words, _WORDS),
        _present_hashes(present, batch.bodies, _BODY),
        _present_hashes(present, batch.body_hashes, _BODY_HASH),
        _present_hashes(present, batch.text_hashes, _TEXT_HASH),
        _or_unknown(batch.days, NO_DAY, "i", count),
        _or_unknown(batch.text_percents, NO_PERCENT, "B", count),
        batch.urls,
        _or_urls(batch.ids, batch.urls),
        _or_urls(batch.canonical_urls, batch.urls),
        batch.claimed_urls,
        batch.titles,
        batch.reasons,
        evidence,
        keys,
    )


def _present(prepared: PreparedPage) -> int:
    fingerprint = prepared.fingerprint
    return (
        (fingerprint.words is not None) * _WORDS
        | (fingerprint.body is not None) * _BODY
        | (prepared.body_hash is not None) * _BODY_HASH
        | (prepared.text_hash is not None) * _TEXT_HASH
    )


def _reason(record: InputRecord) -> str | None:
    return record.prepared.reason if isinstance(record, PageRecord) else record.problem[:MAX_PROBLEM_CHARS]


def _hashes(values: Sequence[int | None]) -> bytes:
    return _packed("Q", [value or 0 for value in values])


def _known(values: Sequence[int | None], unknown: int, kind: str, fitting: range) -> bytes:
    """Return a column of integers with `unknown` for None and what does not fit; b"" if there is nothing else."""
    known = [value if value is not None and value in fitting else unknown for value in values]
    return b"" if all(value == unknown for value in known) else _packed(kind, known)


def _ends(pieces: Sequence[bytes]) -> bytes:
    return _packed("I", list(accumulate(map(len, pieces))))


def _packed(kind: str, values: Sequence[object]) -> bytes:
    """Return a column of integers. kind: of each, as in `struct`."""
    return struct.pack(f"<{len(values)}{kind}", *values)


def _integers(column: bytes, kind: str, count: int) -> list[int]:
    """Return a column of integers; ValueError if it has not `count` of them."""
    if len(column) != count * struct.calcsize(f"<{kind}"):
        raise ValueError(f"a column of {count} values has {len(column)} bytes")
    return list(struct.unpack(f"<{count}{kind}", column))


def _or_unknown(column: bytes, unknown: int, kind: str, count: int) -> list[int]:
    """Return a column of integers, each `unknown` if the message has no such column."""
    return _integers(column, kind, count) if column else [unknown] * count


def _present_hashes(present: bytes, column: bytes, bit: int) -> Hashes:
    """Return a column of hashes, None where `present` lacks the bit."""
    values = _integers(column, "Q", len(present))
    return [value if flags & bit else None for value, flags in zip(values, present, strict=True)]


def _or_urls(names: list[str | None], urls: list[str]) -> list[str]:
    """Return names, and the URL where there is none."""
    return [url if name is None else name for name, url in zip(names, urls, strict=True)]


def _pieces(whole: bytes, ends: bytes, count: int) -> list[bytes]:
    """Return the parts of `whole` up to each end; ValueError if the ends do not rise to its length."""
    places = [0, *_integers(ends, "I", count)]
    if places[-1] != len(whole) or any(start > end for start, end in pairwise(places)):
        raise ValueError("its ends are out of range")
    return [whole[start:end] for start, end in pairwise(places)]


def _without_surrogates(batch: BatchColumns) -> BatchColumns:
    def written(value: object) -> object:
        if isinstance(value, list):
            return [written(one) for one in value]
        return without_surrogates(value) if isinstance(value, str) else value

    fields = {name: written(getattr(batch, name)) for name in batch.__struct_fields__}
    return BatchColumns(**fields)  # type: ignore[arg-type]
