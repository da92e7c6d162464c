"""The kept pages on disk: rows, evidence, names and texts by row number.

A row number is a uint32; numbers ascend in the order of the log and are never used again. `segment` has the files,
`row_reader` reads batches, `compaction` and `erasure` change what was written.
In memory are one bit for each row (`live_rows`), and 5 bytes for each block of 4 KiB: a checksum and a flag.

A *commit* makes everything durable as it was when `begin_commit` was called: the rows until then, which of them are
live. `PendingCommit.finish` does what waits for the disk, in any thread; rows may be
appended and removed meanwhile. A crash leaves the last finished commit; the caller applies the log after its sequence.

Not thread-safe, except for `PendingCommit.finish`. The owner holds the lock of the folder.
After StoreFullError the store is opened again.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.store.address_table import AddressTable
from dedup_service.runtime.store.commit import PendingCommit
from dedup_service.runtime.store.compaction import Compaction
from dedup_service.runtime.store.erasure import blocks_being_erased, complete_erasure, end_erasure, erase_row
from dedup_service.runtime.store.errors import (
    ForeignStoreError,
    StoreDamagedError,
    StoreFullError,
    StoreNumbersUsedError,
    translated_os_errors,
)
from dedup_service.runtime.store.linked_store import followed
from dedup_service.runtime.store.live_rows import LiveRows, live_path, read_live
from dedup_service.runtime.store.manifest import (
    MANIFEST,
    STORE_VERSION,
    Manifest,
    StoreLabel,
    StoreSizes,
    read_manifest,
    write_checked,
)
from dedup_service.runtime.store.row_reader import ReadCounts, RowReader
from dedup_service.runtime.store.segment import LARGEST_FILE, RowBatch, Segment
from dedup_service.runtime.store.store_files import commit_paths, delete_unknown_files, is_own_file
from dedup_service.runtime.store.stored_rows import (
    FILES,
    EvidenceSpans,
    StoredNames,
    unpack_names,
)
from dedup_service.runtime.store.whole_file import extra_path, read_extra

SEGMENT_ROWS = 1 << 20
"""Rows of a segment: about 100 segments at 10^8 rows, with a file descriptor for each of their files."""

_SPARSE_SHARE = 0.5
"""Share of rows to keep below which a segment is compacted: each byte that stays is copied once a halving at most."""

_ENDED_SHARE, _SMALL_SHARE, _MANY_SEGMENTS = 1 / 8, 1 / 16, 64
"""Share of dead rows at which `end_segment` ends one; the share of its numbers up to which a segment is small."""

_READ_ATTEMPTS = 8
"""Commits that may come between reading a manifest and opening its files, before a reader gives up."""

_LARGEST_NUMBER = 1 << 32

Numbers = npt.NDArray[np.integer[Any]]
Array = npt.NDArray[Any]


class PageStore:
    """The store in `folder`. Use `open`."""

    def __init__(self, folder: Path, manifest: Manifest, *, read_only: bool = False) -> None:
        self.folder = folder
        self.manifest = manifest
        """What the last finished commit wrote."""
        self._identity = manifest.identity
        self._segment_rows = manifest.segment_rows
        self._commits = 0 if manifest.live is None else manifest.live.number
        self._segments: dict[int, Segment] = {}
        self._table = AddressTable()
        self._reader = RowReader(self._segments, self._table, self._segment_rows)
        self._next_row = manifest.next_row
        self._removed: list[npt.NDArray[np.int64]] = []
        self._removed_counts: Counter[int] = Counter()
        self._compaction: Compaction | None = None
        self._replaced: list[Segment] = []
        self._pending: PendingCommit | None = None
        self._extra: bytes | None = None
        homes = dict[int, Path]()
        if read_only:
            manifest.segments, self._live, homes = followed(folder, manifest)
        else:
            delete_unknown_files(folder, manifest)
            self._live = read_live(folder, self._segment_rows, manifest.live)
        for label in manifest.segments:
            home = homes.get(label.number, folder)
            segment = Segment(home, self._identity, label.number, label.generation, label, read_only=read_only)
            self._add(segment)
        self._live_counts = {number: int(self._live.segment(number).sum()) for number in self._segments}

    @classmethod
    def open(cls, folder: Path, label: StoreLabel, *, segment_rows: int = SEGMENT_ROWS) -> Self:
        """Open the store in `folder`, or create one if there is none. segment_rows: of a new one, a power of two.

        Raises ForeignStoreError if it belongs to another log or space or to another version; StoreDamagedError if a
        file is missing, too short or altered as far as that is read; StoreFullError if it cannot be written.
        """
        with translated_os_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        if not (folder / MANIFEST).exists():
            if any(is_own_file(path.name) and path.suffix != ".tmp" for path in folder.iterdir()):
                raise StoreDamagedError(
                    f"{folder} has files of a store but no {MANIFEST}: delete the folder, and it is built again from "
                    "the log"
                )
            if segment_rows < 64 or segment_rows & (segment_rows - 1):
                raise ConfigurationError(f"a segment has a power of two of rows, 64 or more, not {segment_rows}")
            manifest = Manifest(STORE_VERSION, uuid.uuid4().hex, label, segment_rows)
            write_checked(folder / MANIFEST, manifest)
        manifest = read_manifest(folder)
        if manifest.label != label:
            raise ForeignStoreError(
                f"{folder} has the pages of log {manifest.label.log} in space {manifest.label.space_id}, this is log "
                f"{label.log} in space {label.space_id}: delete that folder, and it is built again from the log"
            )
        if complete_erasure(folder, manifest):
            write_checked(folder / MANIFEST, manifest)
            end_erasure(folder)
        return cls(folder, manifest)

    @classmethod
    def open_read_only(cls, folder: Path, label: StoreLabel) -> Self | None:
        """Open the store in `folder` as its last commit left it; None if there is none.

        Another process may write to it: nothing is changed on the disk, and what was read stays as it is. Call nothing
        that appends, removes or commits. Raises as `open`; StoreDamagedError also for a file that was replaced
        meanwhile, after some tries, and later for a row that is erased after it was opened.
        """
        for attempt in range(_READ_ATTEMPTS):
            if not (folder / MANIFEST).exists():
                return None
            manifest = read_manifest(folder)
            if manifest.label != label:
                raise ForeignStoreError(f"{folder} has the pages of log {manifest.label.log}, this is log {label.log}")
            try:
                store = cls(folder, manifest, read_only=True)
                store._trust_what_is_erased()
                store._extra = read_extra(folder, manifest.extra)  # the next commit deletes the file
            except StoreDamagedError:
                if attempt + 1 == _READ_ATTEMPTS:
                    raise
            else:
                return store
        return None

    def __len__(self) -> int:
        """Return the number of live rows."""
        return sum(self._live_counts.values())

    @property
    def next_row(self) -> int:
        """The number of the next row that is appended, unless a full segment leaves some numbers out."""
        return self._next_row

    @property
    def segment_rows(self) -> int:
        """Rows of a segment."""
        return self._segment_rows

    @property
    def first_own_row(self) -> int:
        """The row behind those of the segments that are in files of another store."""
        linked = [number for number, segment in self._segments.items() if segment.is_linked]
        return (max(linked, default=-1) + 1) * self._segment_rows

    def live_numbers(self) -> Iterator[npt.NDArray[np.uint32]]:
        """Yield the numbers of live rows, ascending, those of a segment at a time."""
        for number in list(self._segments):
            yield (np.flatnonzero(self._live.segment(number)) + number * self._segment_rows).astype(np.uint32)

    @property
    def counts(self) -> ReadCounts:
        """Reads so far."""
        return self._reader.counts

    def append(
        self, entries: EntryRows, names: Sequence[StoredNames] = (), texts: Sequence[bytes] = ()
    ) -> npt.NDArray[np.uint32]:
        """Append rows with their evidence; return their numbers: uint32[n].

        names, texts: of each row, or empty. Raises StoreFullError if the disk does not take them, and
        StoreNumbersUsedError after 2^32 rows.
        """
        batch = RowBatch(entries, names, texts)
        numbers, first = [], 0
        while first < len(batch):
            segment = self._active()
            stop = batch.fitting(first, segment, self._segment_rows)
            if stop > first:
                numbers.append(self._append(segment, *batch.part(first, stop, segment)))
                first = stop
            elif not segment.rows:
                raise ConfigurationError("the bytes of one row exceed 4 GiB")
            if segment.rows == self._segment_rows or first < len(batch):
                self._seal(segment)
        return np.concatenate(numbers) if numbers else np.zeros(0, np.uint32)

    def make_room(self, evidence_bytes: int) -> int:
        """Return the number of the next row, behind which so many bytes of evidence fit into files.

        The rows of the next call of `append` are then consecutive. Raises as `append`.
        """
        segment = self._active()
        if segment.rows and segment.files["evidence"].length + evidence_bytes > LARGEST_FILE:
            self._seal(segment)
        return self._next_row

    def first(self, after: int = -1, limit: int = 1) -> npt.NDArray[np.int64]:
        """Return the first live rows behind row `after`, ascending: int64[m], `limit` at most."""
        return self._live.first_behind(after, limit)

    def live(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return which rows were appended and not removed: bool[n]."""
        return self._live.has(numbers.astype(np.int64))

    def remove(self, numbers: Numbers) -> None:
        """Remove rows, each of them once; KeyError, and none is removed, if one is not live."""
        places = numbers.astype(np.int64)
        live = self._live.has(places)
        if not live.all():
            raise KeyError(f"no live row {places[~live][0]}")
        self._live.remove(places)
        for number, count in zip(*np.unique(places // self._segment_rows, return_counts=True), strict=True):
            self._live_counts[int(number)] -= int(count)
            self._removed_counts[int(number)] += int(count)
        self._removed.append(places)

    def row_of(self, sequence: int) -> int | None:
        """Return the row of the page at `sequence`, live or not; None if no segment has it."""
        for number, segment in self._segments.items():
            offset = segment.offset_of(sequence, self._segment_rows)
            if offset is not None:
                return number * self._segment_rows + offset
        return None

    def row(self, number: int) -> Any:
        """Return one row as a record of ROW; see `rows`."""
        return self._reader.rows(np.array([number], np.int64))[0]

    def rows(self, numbers: Numbers) -> Array:
        """Return ROW[n]. KeyError for a number that is no row; a removed row may be there until it is compacted."""
        return self._reader.rows(numbers.astype(np.int64))

    def evidence(self, numbers: Numbers) -> EvidenceSpans:
        """Return the evidence of rows, each followed by its keys; zeros after an erasure. See `rows`."""
        return self._reader.evidence(numbers.astype(np.int64))

    def entries(self, numbers: Numbers) -> EntryRows:
        """Return rows with their evidence."""
        return EntryRows(self.rows(numbers), self.evidence(numbers).data.tobytes())

    def names(self, numbers: Numbers) -> list[StoredNames | None]:
        """Return the names of rows; None where there are none, or where they were erased."""
        spans = self._reader.spans("names", numbers.astype(np.int64))
        return [unpack_names(spans[place]) for place in range(len(spans))]

    def texts(self, numbers: Numbers) -> list[bytes | None]:
        """Return the texts of rows as they were given; None where there are none any more."""
        spans = self._reader.spans("texts", numbers.astype(np.int64))
        values = (spans[place] for place in range(len(spans)))
        return [value if value and value.strip(b"\0") else None for value in values]

    def extra(self) -> bytes:
        """Return what the last commit had beside the rows; StoreDamagedError if its file is altered or missing."""
        return read_extra(self.folder, self.manifest.extra) if self._extra is None else self._extra

    def begin_commit(
        self,
        sequence: int,
        tail: str,
        extra: bytes | Callable[[], bytes] = b"",
        sizes: StoreSizes | None = None,
    ) -> PendingCommit:
        """Note the present state, which `finish` makes durable. sequence, tail: last record of the log, its digest.

        extra: other state, which gets a file of its own, or what `finish` calls for it. sizes: for readers of the
        manifest. A commit that is not finished is finished first.
        """
        self.finish_commit()
        obsolete = set[Path]()
        if self.manifest.live is not None:
            obsolete.add(live_path(self.folder, self.manifest.live.number))
        if self.manifest.extra is not None:
            obsolete.add(extra_path(self.folder, self.manifest.extra.number))
        empty = [number for number, live in self._live_counts.items() if not live and self._is_sealed(number)]
        dropped: list[Callable[[], None]] = []
        if self._compaction is not None and self._compaction.old.number in empty:
            dropped.append(self._compaction.abort)  # first, since its thread reads the segment
            self._compaction = None
        dropped += [segment.delete for segment in (*map(self._forget, empty), *self._replaced)]
        self._replaced.clear()
        self._live.begin_at(min(self._segments, default=self._next_row // self._segment_rows))
        manifest = msgspec.structs.replace(
            self.manifest,
            sequence=sequence,
            tail=tail,
            next_row=self._next_row,
            segments=[segment.label() for segment in self._segments.values()],
            sizes=sizes,
            extra=None,
        )
        manifest = msgspec.json.decode(msgspec.json.encode(manifest), type=Manifest)  # labels change later
        parts = [part for segment in self._segments.values() for part in segment.cut()]
        self._removed.clear()
        self._removed_counts.clear()
        self._commits += 1
        live = LiveRows(self._segment_rows, self._live.first, self._live.bits.copy())
        self._pending = PendingCommit(
            self.folder, manifest, self._commits, live, parts, dropped, obsolete, extra, self._adopt
        )
        return self._pending

    def commit(self, sequence: int, tail: str, extra: bytes = b"") -> None:
        """Make the present state durable; see `begin_commit`."""
        self.begin_commit(sequence, tail, extra).finish()

    def finish_commit(self) -> None:
        """Finish a commit that was begun, or wait for the thread that does."""
        if self._pending is not None:
            self._pending.finish()
            self._pending = None

    def end_segment(self) -> None:
        """Begin a new segment with the next row if an eighth of the present one is dead, so that it can be compacted.

        Numbers that it has not given are lost, and each segment takes file descriptors: nothing is done in the upper
        half of all numbers, nor with a small segment where there are many.
        """
        number = self._next_row // self._segment_rows
        segment = self._segments.get(number)
        if segment is None or self._next_row >= _LARGEST_NUMBER // 2:
            return
        is_worth_it = len(self._segments) < _MANY_SEGMENTS or segment.rows >= _SMALL_SHARE * self._segment_rows
        if is_worth_it and segment.rows - self._live_counts[number] >= max(1, _ENDED_SHARE * segment.rows):
            self._seal(segment)

    def compact(self, budget_bytes: int, *, wait: bool = True, below: float = _SPARSE_SHARE) -> bool:
        """Copy up to about `budget_bytes` of live rows out of the sparsest segment; return whether there is more to do.

        below: share of rows to keep below which a segment is sparse; 1.0: all that have dead rows. Row numbers do not
        change. Without `wait` nothing waits for the disk: the old files stay until the next commit, and as long as they
        have as many rows as a segment, no other segment is begun.
        """
        if self._compaction is None:
            number = self._sparsest(below)
            if number is None or not self._may_begin_compaction(wait=wait):
                return False
            self._compaction = Compaction(self.folder, self._identity, self._segments[number], self._kept(number))
        if self._compaction.step(budget_bytes, wait=wait):
            self._replaced.append(self._compaction.old)
            self._add(self._compaction.new)
            self._compaction = None
        if wait:
            self._publish_replaced()
        return self._compaction is not None or self._sparsest(below) is not None

    def erase(self, number: int) -> None:
        """Overwrite the evidence, names and text of a row with zeros, durably.

        The row's numbers (hashes, fingerprints) stay; remove it before or after. KeyError if there is no such row,
        also if compaction has left it out: then its bytes are in no file.
        """
        self._publish_replaced()
        row = self._reader.stored(np.array([number], np.int64))[0]
        segment = self._segments[number // self._segment_rows]
        if self._compaction is not None and self._compaction.old is segment:
            self._abort_compaction()
        erase_row(self.folder, self.manifest, segment, row)

    def disk_bytes(self) -> dict[str, int]:
        """Return the bytes of each kind of file."""
        sizes = {name: sum(segment.files[name].length for segment in self._segments.values()) for name in FILES}
        of_commit = commit_paths(self.folder, self.manifest)
        return {**sizes, "commit": sum(path.stat().st_size for path in of_commit if path.exists())}

    def memory_bytes(self) -> int:
        """Return the bytes of memory that grow with the rows: live rows, checksums and flags."""
        files = (file for segment in self._segments.values() for file in segment.files.values())
        return self._live.bits.nbytes + sum(file.sums_bytes() for file in files)

    def verify(self) -> None:
        """Read and verify all files; StoreDamagedError names the first that is altered."""
        self.extra()
        for segment in self._segments.values():
            for file in segment.files.values():
                for _ in file.pieces():
                    pass

    def close(self) -> None:
        """Finish a commit that was begun, and close all files. What was not committed is lost."""
        try:
            self.finish_commit()
        finally:
            self._abort_compaction()
            for segment in (*self._segments.values(), *self._replaced):
                segment.close()
            self._segments.clear()
            self._replaced.clear()

    def _adopt(self, manifest: Manifest) -> None:
        """Go on from a commit that is durable; the thread that has finished it calls this."""
        self.manifest = manifest

    def _active(self) -> Segment:
        """Return the segment that takes the next row."""
        number = self._next_row // self._segment_rows
        if self._next_row >= _LARGEST_NUMBER:
            raise StoreNumbersUsedError(
                f"{self.folder} has given all {_LARGEST_NUMBER} row numbers: delete that folder, and it is built again "
                "from the log"
            )
        segment = self._segments.get(number)
        if segment is None:
            segment = Segment(self.folder, self._identity, number, 0, None)
            self._add(segment)
            self._live_counts[number] = 0
        return segment

    def _append(self, segment: Segment, rows: Array, contents: dict[str, bytes]) -> npt.NDArray[np.uint32]:
        first = self._next_row
        try:
            segment.append(rows, contents)
        except StoreFullError:
            self._table.set(segment)  # files before the one that failed may have grown, and be mapped anew
            if segment.is_uneven:
                self._seal(segment)
            raise
        self._next_row += len(rows)
        self._table.set(segment)
        self._live.add(range(first, self._next_row))
        self._live_counts[segment.number] += len(rows)
        return np.arange(first, self._next_row, dtype=np.uint32)

    def _seal(self, segment: Segment) -> None:
        segment.seal()
        self._table.set(segment)
        self._next_row = (segment.number + 1) * self._segment_rows

    def _is_sealed(self, number: int) -> bool:
        return (number + 1) * self._segment_rows <= self._next_row

    def _add(self, segment: Segment) -> None:
        self._segments[segment.number] = segment
        self._table.set(segment)

    def _trust_what_is_erased(self) -> None:
        """Do not verify blocks that an erasure is changing: some of their rows are dead, the others as they were."""
        for file_name, blocks in blocks_being_erased(self.folder):
            segment = self._segments.get(int(file_name.split("-")[0]))
            file = None if segment is None else segment.files[file_name.rsplit(".", 1)[1]]
            if file is not None and file.path.name == file_name:
                file.trust(blocks)

    def _forget(self, number: int) -> Segment:
        segment = self._segments.pop(number)
        del self._live_counts[number]
        self._table.clear(number)
        return segment

    def sparse_rows(self, below: float = 1.0) -> int:
        """Return how many rows `compact` has to copy, by its present bound."""
        return sum(rows for rows, share in self._to_keep().values() if share < below)

    def _sparsest(self, below: float) -> int | None:
        """Return the segment of which the smallest share would be kept, below a bound; None without one."""
        shares = [(share, number) for number, (_, share) in self._to_keep().items()]
        share, number = min(shares, default=(1.0, -1))
        return number if share < below else None

    def _to_keep(self) -> dict[int, tuple[int, float]]:
        """Return how many rows, and which share, a compaction of each committed segment would keep."""
        committed = {label.number: label.rows for label in self.manifest.segments}
        rows = {number: self._live_counts[number] + self._removed_counts[number] for number in self._segments}
        return {
            number: (rows[number], rows[number] / segment.rows)
            for number, segment in self._segments.items()
            if self._is_sealed(number) and segment.rows == committed.get(number)
        }

    def _kept(self, number: int) -> npt.NDArray[np.bool_]:
        """Return the rows of a segment that are live now or in the last commit: bool[segment_rows]."""
        kept = self._live.segment(number).copy()
        for numbers in self._removed:
            offsets = numbers - number * self._segment_rows
            kept[offsets[(offsets >= 0) & (offsets < self._segment_rows)]] = True
        return kept

    def _may_begin_compaction(self, *, wait: bool) -> bool:
        """Return whether no commit is under way, for which to wait, and not too much waits for the next one."""
        if wait or self._pending is None or self._pending.is_finished:
            self.finish_commit()
            return wait or sum(segment.rows for segment in self._replaced) < self._segment_rows
        return False

    def _publish_replaced(self) -> None:
        """Let the last commit have the compacted segments; waits for the disk."""
        self.finish_commit()
        if not self._replaced:
            return
        compacted = {old.number: self._segments[old.number].label() for old in self._replaced}
        labels = [compacted.get(label.number, label) for label in self.manifest.segments]
        manifest = msgspec.structs.replace(self.manifest, segments=labels)
        write_checked(self.folder / MANIFEST, manifest)
        self.manifest = manifest
        while self._replaced:
            self._replaced.pop().delete()

    def _abort_compaction(self) -> None:
        if self._compaction is not None:
            self._compaction.abort()
            self._compaction = None
