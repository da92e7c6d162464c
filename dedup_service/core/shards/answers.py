"""What a shard says of pages and records of the log, and what several shards say together.

An answer has the entries that a page may match, with their evidence and names: so the resolver compares them as if they
were in its own tables. `merged` makes one `TableAnswers` of the answers of all shards; rows are named by sequences.

Caps do not depend on how many shards there are. Of entries with one fingerprint the resolver takes the earliest
MAX_IDENTICAL of all shards, and of equal texts as many as the decider asks for. Each shard lists more than that, since
some may have been removed within the window, of which it does not know yet: SPARE_IDENTICAL more, and of equal hashes
as many as the window has pages (`equal_limit`).
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.candidates import MAX_EQUAL, LocalCandidates
from dedup_service.core.decision.entry_rows import BODY_DECIDES, ROW, TEXT_HASH, EntryRows, EvidenceSpans, indexed_by
from dedup_service.core.decision.page_columns import PageColumns
from dedup_service.core.decision.table_answers import (
    MAX_IDENTICAL,
    FoundHashes,
    FoundRows,
    Pairs,
    ProbeBounds,
    TableAnswers,
    cell_pairs,
    joined,
    look_up_hashes,
    read_evidence,
)
from dedup_service.core.evidence.columns import EvidenceColumns
from dedup_service.core.index.cell_index import CellAnswers
from dedup_service.core.page import CHANNELS

Integers = npt.NDArray[np.int64]

SPARE_IDENTICAL = 512
"""Entries with one fingerprint that a shard lists beside MAX_IDENTICAL: so many may be removed within a window."""

HASH_KINDS = ("urls", "claims", "texts", "bodies", "targets")
"""Equal hashes: of the page's URL, of the one that it claims, of its text and body, and of the URL that a correction
calls its original."""

NEAR = np.dtype([("page", "<u4"), ("channel", "u1"), ("value", "<u8"), ("sequence", "<i8")])
"""A fingerprint `value` of an entry that is within the radius of a page's: the number of the page in its batch, and of
the channel in CHANNELS."""

OLDEST = np.dtype([("sequence", "<i8"), ("ordinal", "<i8")])


def equal_limit(window: int) -> int:
    """Return how many entries with one hash a shard lists for a page. window: in pages."""
    return MAX_EQUAL + window


@dataclass(frozen=True, slots=True, eq=False)
class BatchAnswer:
    """What a shard says of n pages that are announced together.

    entries: m of its entries, ascending by sequence. names: (id, URL) of each. pages, places: int64[k] each, pairs of a
    page and an entry that may be similar, and by_cells: bool[k], whether shared keys say so. near: NEAR[l], all entries
    within a radius. hashes: for each of HASH_KINDS the pages and entries with that hash: two int64 each. looked_at:
    int64[n], entries that were looked at.
    """

    entries: EntryRows
    names: Sequence[tuple[str, str]]
    pages: Integers
    places: Integers
    by_cells: npt.NDArray[np.bool_]
    near: npt.NDArray[Any]
    hashes: Sequence[Pairs]
    looked_at: Integers


@dataclass(frozen=True, slots=True, eq=False)
class RecordAnswer:
    """The entries of a shard that a record of the log speaks of, by their URL or their sequence, with their names."""

    entries: EntryRows
    names: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, eq=False)
class MessageAnswer:
    """What a shard says of one message of the log: an answer for each batch in it, or that of its record.

    offset: of the message. first: ordinal of the first page that is decided in it. oldest: OLDEST[n], the earliest of
    the shard's entries, if any may expire; is_all: whether it has no others.
    """

    offset: int
    first: int
    batches: Sequence[BatchAnswer] = ()
    record: RecordAnswer | None = None
    oldest: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, OLDEST))
    is_all: bool = True


def probe_shard(
    pages: PageColumns,
    targets: FoundHashes,
    bounds: ProbeBounds,
    entries: LocalCandidates,
    cells: CellAnswers,
    limit: int,
) -> BatchAnswer:
    """Return what tables and store of a shard say of pages; the answer has no names yet.

    targets: rows of the URLs that corrections call the originals of pages. limit: of rows with one hash.
    """
    store, tables = entries.store, entries.tables
    hashes = [*look_up_hashes(pages, tables), targets]
    pairs, looked_at = cell_pairs(cells)
    of_cells = len(pairs)
    near: list[tuple[str, Integers, Integers]] = []
    for channel, index in tables.indexes.items():
        asked = np.flatnonzero(indexed_by(pages.rows["flags"], channel))
        values = pages.rows[channel][asked].astype(np.uint64)
        found = index.probe_many(values, most_identical=MAX_IDENTICAL + SPARE_IDENTICAL)
        if len(found.sequences):
            counts = np.diff(found.offsets)
            looked_at[asked] += counts
            pairs.append((np.repeat(asked, counts), found.sequences))
            near.append((channel, *pairs[-1]))
    equal = {row for kind in hashes for rows in kind.rows.values() for row in rows[:limit]}
    rows, spans, columns = read_evidence(store, pairs, sorted(equal))
    places, offsets = joined(pairs, rows, columns, pages.evidence.sketches, bounds)
    numbers = np.repeat(np.arange(len(pages)), np.diff(offsets))
    wanted = np.zeros(len(rows), np.bool_)
    wanted[places] = True
    for _, _, theirs in near:
        wanted[_places(rows, theirs)[0]] = True
    if equal:
        wanted[_places(rows, np.array(sorted(equal), np.int64))[0]] = True
    read = np.flatnonzero(wanted)
    records = store.rows(rows[read]) if len(read) else np.empty(0, ROW)
    found_rows = FoundRows(rows, spans, read, records)
    listed = [_confirmed(kind, name, found_rows, limit) for kind, name in zip(hashes, _FIELDS, strict=True)]
    place_of = np.full(len(rows), -1, np.int64)
    place_of[read] = np.arange(len(read))
    listed_near = [_listed_near(channel, asked, theirs, rows, place_of, records) for channel, asked, theirs in near]
    # Entries that are near and no more are not sent.
    sent = np.zeros(len(read), np.bool_)
    sent[place_of[places]] = True
    for _, equals in listed:
        sent[place_of[_places(rows, equals)[0]]] = True
    new_place = np.cumsum(sent) - 1
    shared = _shared(pairs[:of_cells], numbers, places, rows)
    return BatchAnswer(
        _entries(read[sent], records[sent], spans),
        (),
        numbers,
        new_place[place_of[places]],
        shared,
        np.concatenate([np.empty(0, NEAR), *listed_near]),
        [(of_page, new_place[place_of[_places(rows, equals)[0]]]) for of_page, equals in listed],
        looked_at,
    )


_FIELDS = (("url_hash", 0), ("url_hash", 0), ("text_hash", TEXT_HASH), ("body_hash", BODY_DECIDES), ("url_hash", 0))


def _places(rows: Integers, wanted: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return the places of those of the wanted that are among rows, which ascend, and which of them are."""
    places = np.searchsorted(rows, wanted)
    there = places < len(rows)
    there[there] = rows[places[there]] == wanted[there]
    return places[there], there


def _confirmed(found: FoundHashes, name: tuple[str, int], read: FoundRows, limit: int) -> Pairs:
    """Return the pages and rows whose hashes are equal, the earliest `limit` rows of each page."""
    pages: list[int] = []
    rows: list[int] = []
    for page, theirs in found.rows.items():
        value = found.value(page)
        equal = [row for row in theirs[:limit] if value is not None and read.has(row, name[0], value)]
        pages += [page] * len(equal)
        rows += equal
    return np.array(pages, np.int64), np.array(rows, np.int64)


def _listed_near(
    channel: str, pages: Integers, theirs: Integers, rows: Integers, place_of: Integers, records: Any
) -> npt.NDArray[Any]:
    """Return the live rows within a radius as NEAR."""
    places, there = _places(rows, theirs)
    near = np.empty(len(places), NEAR)
    near["page"], near["channel"] = pages[there], CHANNELS.index(channel)
    near["value"], near["sequence"] = records[channel][place_of[places]], records["sequence"][place_of[places]]
    return near


def _shared(of_cells: Sequence[Pairs], numbers: Integers, places: Integers, rows: Integers) -> npt.NDArray[np.bool_]:
    """Return which pairs of a page and a place the cells have found: bool[k]."""
    if not of_cells or not len(rows):
        return np.zeros(len(numbers), np.bool_)
    ((pages, theirs),) = of_cells
    found, there = _places(rows, theirs)
    return np.isin(numbers * len(rows) + places, pages[there] * len(rows) + found)


def _entries(places: Integers, records: Any, spans: EvidenceSpans) -> EntryRows:
    """Return rows with their evidence, which is at some places of the spans, without paths."""
    sizes, starts = spans.sizes[places], spans.starts[places]
    rows = records.copy()
    rows["evidence_bytes"], rows["keys_bytes"] = sizes, 0
    parts = [spans.data[start : start + size] for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)]
    return EntryRows(rows, np.concatenate(parts).tobytes() if parts else b"")


def merged(answers: Sequence[BatchAnswer], pages: PageColumns, gone: Container[int]) -> TableAnswers:
    """Return what the answers of all shards say together of the same pages.

    gone: sequences of entries that were removed since; they are left out.
    """
    rows = np.concatenate([answer.entries.rows for answer in answers])
    sequences = rows["sequence"]
    order = np.argsort(sequences, kind="stable")
    live = _not_in(sequences[order], gone)
    order = order[live]
    place_of = np.full(len(rows), -1, np.int64)
    place_of[order] = np.arange(len(order))
    firsts = np.cumsum([0, *(len(answer.entries) for answer in answers)])[:-1].tolist()
    sizes = rows["evidence_bytes"].astype(np.int64)
    data = np.frombuffer(b"".join([answer.entries.evidence for answer in answers]), np.uint8)
    all_starts = np.cumsum(sizes) - sizes
    starts, sizes = all_starts[order], sizes[order]
    spans = EvidenceSpans(data, np.append(starts, len(data)), sizes)
    columns = EvidenceColumns.of(data, starts, sizes)
    records = rows[order]
    found = FoundRows(records["sequence"].astype(np.int64), spans, np.arange(len(order)), records)
    numbers = np.concatenate([answer.pages for answer in answers])
    places = np.concatenate([place_of[first + answer.places] for first, answer in zip(firsts, answers, strict=True)])
    by_cells = np.concatenate([answer.by_cells for answer in answers])
    near = np.concatenate([answer.near for answer in answers])
    there = places >= 0
    numbers, places, by_cells = numbers[there], places[there], by_cells[there]
    cut, allowed = _cut(near[_not_in(near["sequence"], gone)])
    if cut:
        named = found.rows[places].tolist()
        kept = [
            shares or page not in cut or row in allowed[page]
            for page, row, shares in zip(numbers.tolist(), named, by_cells.tolist(), strict=True)
        ]
        numbers, places = numbers[kept], places[kept]
    order = np.lexsort((places, numbers))
    offsets = np.searchsorted(numbers[order], np.arange(len(pages) + 1)).tolist()
    values = _hashes_of(pages)
    urls, claims, texts, bodies = (
        FoundHashes(*asked, _by_page(kind, answers, firsts, place_of, found.rows)) for kind, asked in enumerate(values)
    )
    looked_at = np.sum([answer.looked_at for answer in answers], axis=0)
    return TableAnswers(found, columns, places[order], offsets, urls, claims, texts, bodies, looked_at, cut)


def targets_of(page: int, answers: Iterable[BatchAnswer]) -> list[int]:
    """Return the sequences of the entries that corrections call the originals of a page, ascending."""
    found: list[int] = []
    for answer in answers:
        numbers, places = answer.hashes[len(HASH_KINDS) - 1]
        found += answer.entries.rows["sequence"][places[numbers == page]].tolist()
    return sorted(found)


def _not_in(sequences: Integers, gone: Container[int]) -> npt.NDArray[np.bool_]:
    return np.fromiter((sequence not in gone for sequence in sequences.tolist()), np.bool_, len(sequences))


def _hashes_of(pages: PageColumns) -> list[tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]]:
    """Return the hashes that pages ask for, in the order of the first four of HASH_KINDS."""
    rows, flags = pages.rows, pages.rows["flags"]
    return [
        (rows["url_hash"], None),
        (pages.claims, pages.claiming),
        (rows["text_hash"], (flags & TEXT_HASH) != 0),
        (rows["body_hash"], (flags & BODY_DECIDES) != 0),
    ]


def _by_page(
    kind: int, answers: Sequence[BatchAnswer], firsts: Sequence[int], place_of: Integers, sequences: Integers
) -> dict[int, Sequence[int]]:
    """Return the sequences of the entries with a hash of each page, ascending."""
    rows: dict[int, list[int]] = {}
    for first, answer in zip(firsts, answers, strict=True):
        numbers, places = answer.hashes[kind]
        for page, place in zip(numbers.tolist(), place_of[first + places].tolist(), strict=True):
            if place >= 0:
                rows.setdefault(page, []).append(int(sequences[place]))
    return {page: sorted(rows[page]) for page in sorted(rows)}


def _cut(near: npt.NDArray[Any]) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """Return the pages of which one fingerprint has MAX_IDENTICAL entries or more, with what is near to each.

    The first has those of the fingerprints that were cut, the second all that are left. near: without what is gone.
    """
    pages, counts = np.unique(near["page"], return_counts=True)
    cut: dict[int, set[int]] = {}
    allowed: dict[int, set[int]] = {}
    for page in pages[counts >= MAX_IDENTICAL].tolist():
        own = near[near["page"] == page]
        own = own[np.lexsort((own["sequence"], own["value"], own["channel"]))]
        changes = (own["value"][1:] != own["value"][:-1]) | (own["channel"][1:] != own["channel"][:-1])
        first = np.concatenate([[0], np.flatnonzero(changes) + 1]).astype(np.int64)
        sizes = np.diff(np.append(first, len(own)))
        rank = np.arange(len(own)) - np.repeat(first, sizes)
        kept = own["sequence"][rank < MAX_IDENTICAL].tolist()
        if sizes.max(initial=0) >= MAX_IDENTICAL:
            cut[page] = allowed[page] = set(kept)
    return cut, allowed
