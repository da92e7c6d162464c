"""Input records of the log in columns: what a message with many pages is, without an object for each page.

    columns[2:5], columns.take([0, 3])      # the same of some records
    columns.prepared(2), columns.record(2)  # one of them as a value

Most pages of a log are new, and nothing needs a new page as a value. Values are made of the others alone, when somebody
asks for them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

from dedup_service.core.dates import iso_of_day
from dedup_service.core.log_records import LogRecord, PageRecord, RejectedRecord, Source
from dedup_service.core.page import Fingerprint, Page, PreparedPage

NO_DAY, NO_PERCENT = -(1 << 31), 255
"""Of a page whose date or share of main text is not known. They are on the wire."""

Hashes = list[int | None]
"""Unsigned 64-bit."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordColumns:
    """n input records of one topic in the order of the log; the pages among them are of one space.

    partitions, offsets: the places of the input records. is_rejected: whether it is not a page. days: when pages were
    published (`core.dates`), or NO_DAY. text_percents: as in `Page`, or NO_PERCENT. words … reasons: as in `Page` and
    `PreparedPage`; of a record that is not a page, `reasons` has the problem, and the other columns nothing.
    """

    topic: str
    space_id: str
    sequences: list[int]
    partitions: list[int]
    offsets: list[int]
    is_rejected: list[bool]
    words: Hashes
    bodies: Hashes
    body_hashes: Hashes
    text_hashes: Hashes
    days: list[int]
    text_percents: list[int]
    urls: list[str]
    ids: list[str]
    canonical_urls: list[str]
    claimed_urls: list[str | None]
    titles: list[str]
    reasons: list[str | None]
    evidence: list[bytes]
    keys: list[bytes]

    @classmethod
    def joined(cls, parts: Sequence["RecordColumns"]) -> "RecordColumns":
        """Return the records of several, one after the other; all are of one topic and space."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*(_columns_of(part) for part in parts), strict=True)
        joined: Iterator[Any] = (list(chain.from_iterable(column)) for column in columns)
        return cls(parts[0].topic, parts[0].space_id, *joined)

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.urls)

    def __getitem__(self, part: slice) -> "RecordColumns":
        return RecordColumns(self.topic, self.space_id, *(column[part] for column in _columns_of(self)))

    def take(self, places: Sequence[int]) -> "RecordColumns":
        """Return the records at some places, ascending."""
        taken: Iterator[Any] = ([column[place] for place in places] for column in _columns_of(self))
        return RecordColumns(self.topic, self.space_id, *taken)

    @property
    def rejected(self) -> list[int]:
        """The places of the records that are not pages."""
        return [place for place, is_rejected in enumerate(self.is_rejected) if is_rejected]

    def source(self, place: int) -> Source:
        """Return the place of an input record."""
        return Source(self.topic, self.partitions[place], self.offsets[place])

    def prepared(self, place: int) -> PreparedPage:
        """Return a page."""
        percent = self.text_percents[place]
        return PreparedPage(
            Page(
                url=self.urls[place],
                canonical_url=self.canonical_urls[place],
                id=self.ids[place],
                title=self.titles[place],
                date=iso_of_day(self.days[place]),
                text_percent=percent if percent <= 100 else None,
                claimed_url=self.claimed_urls[place],
            ),
            Fingerprint(self.words[place], self.bodies[place]),
            self.body_hashes[place],
            self.evidence[place],
            self.reasons[place],
            self.text_hashes[place],
            self.keys[place],
        )

    def numbered_page(self, place: int) -> tuple[int, PreparedPage]:
        """Return the sequence of a page, and the page."""
        return self.sequences[place], self.prepared(place)

    def record(self, place: int) -> PageRecord | RejectedRecord:
        """Return a record as a value."""
        if self.is_rejected[place]:
            return RejectedRecord(self.source(place), self.reasons[place] or "")
        return PageRecord(self.source(place), self.prepared(place), self.space_id)

    def records(self) -> list[PageRecord | RejectedRecord]:
        """Return all records as values."""
        return list(map(self.record, range(len(self))))

    def numbered(self) -> Iterator[tuple[int, PageRecord | RejectedRecord]]:
        """Yield all records as values, each with its sequence."""
        return zip(self.sequences, self.records(), strict=True)


def _columns_of(records: RecordColumns) -> list[Any]:
    """Return all columns, in the order of the fields."""
    return [getattr(records, field.name) for field in fields(records)[2:]]


LogPart = RecordColumns | tuple[int, LogRecord]
"""A part of the log: input records in columns, or any one record with its sequence."""
