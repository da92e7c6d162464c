"""The filter in one process, without a broker: pages in, verdicts out, state on disk.

    with NearDuplicateFilter.open("state") as sieve:
        verdict = sieve.check(page)

A verdict is handed out once it is durable. Killed at any instant, the filter opens again with every verdict
it gave; a record given again byte for byte gets the verdict it had, so the same run again completes itself.
Batches are what makes it fast: every call is one transaction. Calls from several threads take turns.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Self

from dedup_service.core.decision.entry_arrays import HeldEntries
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.space import Space
from dedup_service.core.verdict import Verdict
from dedup_service.runtime.embedded.corrections import Correction
from dedup_service.runtime.embedded.database import Database
from dedup_service.runtime.embedded.folder import FolderKind, StateLock, made_folder, refuse_other_kind
from dedup_service.runtime.embedded.state import JOURNAL_FILE, SNAPSHOT_EVERY, TEXT_BUDGET_BYTES, State, StateSettings
from dedup_service.runtime.embedded.state_info import StateInfo, read_info
from dedup_service.runtime.events import IndexEvent, Observer
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter

__all__ = ["NearDuplicateFilter"]

INDEXED_BITS = 64
_DIGEST_BYTES = 16  # blake2b: pages come from strangers, who must not be able to make two records collide


class NearDuplicateFilter:
    """The streaming near-duplicate filter; made by `open`."""

    def __init__(self, options: SpaceOptions | None, state: State, folder: Path | None, lock: StateLock | None) -> None:
        self._options = options
        self._state = state
        self._folder = folder
        self._lock = lock
        self._turn = threading.Lock()

    @classmethod
    def open(
        cls,
        path: str | Path | None,
        *,
        space: SpaceOptions | None = None,
        rule: MatchRule | None = None,
        shards: int = 1,
        text_budget_bytes: int = TEXT_BUDGET_BYTES,
        snapshot_every: int = SNAPSHOT_EVERY,
        observers: Iterable[Observer] = (),
    ) -> Self:
        """Open the state folder `path`, made where it is missing; None keeps the state in memory.

        space: None is the default space. rule: None keeps the state's own, or starts with the default;
        another one is recorded and in force for the pages from here on. shards: parts of each index, the same
        answers for any number. text_budget_bytes: compressed texts kept for explanations, oldest out first.
        snapshot_every: records between two snapshots, at least. observers: are told what was done, once it is durable.
        Raises StateInUseError while another process has the folder; ForeignStateError where it is of another
        space or a newer version, or the Kafka service's; StateFullError where it cannot be written.
        """
        made = build_fingerprinter(space).space
        settings = StateSettings(shards=shards, text_budget_bytes=text_budget_bytes, snapshot_every=snapshot_every)
        if path is None:
            return cls(space, _state(None, made, rule, settings, observers), None, None)
        folder = made_folder(Path(path))
        lock = StateLock(folder)
        lock.acquire()
        try:
            refuse_other_kind(folder, FolderKind.EMBEDDED)
            return cls(space, _state(folder, made, rule, settings, observers), folder, lock)
        except BaseException:
            lock.release()
            raise

    @property
    def space_id(self) -> str:
        """Return the space that every fingerprint given must be of."""
        return self._state.space_id

    @property
    def rule(self) -> MatchRule:
        """Return the match rule in force."""
        return self._state.rule

    def check(self, page: Page, *, delivery_id: bytes | None = None) -> Verdict:
        """Return the verdict on one page; see `check_many`, which is faster for more than one."""
        return self.check_many([page], delivery_ids=None if delivery_id is None else [delivery_id])[0]

    def check_many(self, pages: Iterable[Page], *, delivery_ids: Iterable[bytes | None] | None = None) -> list[Verdict]:
        """Return the verdicts on `pages` in their order, as one durable batch.

        records: what was delivered (a line of a file), one for each page; the same bytes again get the
        verdict they had.
        Raises StateFullError where the disk refuses the batch: nothing of it is stored, open the state again.
        """
        prepare = build_fingerprinter(self._options).prepare
        return self.decide_many([prepare(page) for page in pages], None if delivery_ids is None else list(delivery_ids))

    def decide_many(
        self, prepared: Sequence[PreparedPage], delivery_ids: Sequence[bytes | None] | None = None
    ) -> list[Verdict]:
        """Return the verdicts on pages whose fingerprints were made elsewhere, in this filter's space."""
        if delivery_ids is not None and len(delivery_ids) != len(prepared):
            raise ConfigurationError(
                f"{len(prepared)} pages came with {len(delivery_ids)} records: give one for each page, or none"
            )
        digests = (
            [None] * len(prepared)
            if delivery_ids is None
            else [None if record is None else _digest_of(record) for record in delivery_ids]
        )
        with self._turn:
            return self._state.decide(list(zip(prepared, digests, strict=True)))

    def retract(self, page: Page | Verdict | str) -> Verdict:
        """Take a kept page out, because its store failed or it must go; later copies are `unique` again.

        page: as a Page (its canonical URL counts), as the verdict it had, or its canonical URL or id; an id
        that is no URL is looked for in the whole log. Returns the verdict that had kept it.
        Raises StateError where no such page is kept: never seen, not kept, or retracted before.
        """
        reference = (
            page.sequence if isinstance(page, Verdict) else page.canonical_url if isinstance(page, Page) else page
        )
        with self._turn:
            return self._state.retract(reference)

    def verdict_of(self, delivery_id: bytes) -> Verdict | None:
        """Return the verdict that these bytes had, None where they were never given."""
        with self._turn:
            return self._state.verdict_of(_digest_of(delivery_id))

    def text_of(self, verdict: Verdict) -> str | None:
        """Return the main text of a page, None where the text budget has let it go."""
        return self.text_at(verdict.sequence)

    def text_at(self, sequence: int) -> str | None:
        """Return the main text of the page at `sequence`, None where the text budget has let it go."""
        with self._turn:
            return self._state.text_at(sequence)

    def correct(self, record: CorrectionRecord, *, by: str | None = None, at: float | None = None) -> Correction:
        """Record what a person said of two pages, by canonical URL: in force from the next page on, durably.

        by: who said it; at: when, Unix seconds. A kept page that is called a duplicate leaves. Verdicts given so far
        stay. Whether the pages are known is not asked.
        """
        with self._turn:
            return self._state.correct(record, by=by, at=at)

    @contextmanager
    def reading(self) -> Iterator[Database]:
        """Yield the journal for reading: beside whoever decides, or, in memory, while nobody does."""
        if self._folder is None:
            with self._turn:
                yield self._state.journal.database
            return
        database = Database(self._folder / JOURNAL_FILE, read_only=True)
        try:
            yield database
        finally:
            database.close()

    def held(self) -> HeldEntries:
        """Return the pages that others are compared with, within milliseconds however many they are."""
        with self._turn:
            return self._state.held()

    @property
    def options(self) -> SpaceOptions | None:
        """How fingerprints of this filter are made; None is the default."""
        return self._options

    def index_event(self) -> IndexEvent | None:
        """Return how the indexes stand, None while they are at work: nobody waits for it."""
        if not self._turn.acquire(blocking=False):
            return None
        try:
            return self._state.index_event()
        finally:
            self._turn.release()

    def info(self) -> StateInfo:
        """Return what the state holds now."""
        with self._turn:
            return read_info(self._state.journal.database, self._folder)

    def close(self) -> None:
        """Take a snapshot and let go of the folder; a second call does nothing."""
        with self._turn:
            try:
                self._state.close()
            finally:
                if self._lock is not None:
                    self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _state(
    folder: Path | None,
    space: Space,
    rule: MatchRule | None,
    settings: StateSettings,
    observers: Iterable[Observer],
) -> State:
    if space.bits != INDEXED_BITS:
        raise ConfigurationError(
            f"space {space.space_id} has fingerprints of {space.bits} bits, the index takes {INDEXED_BITS}: "
            "choose 64 bits to compare pages"
        )
    return State(folder, space.space_id, space.to_dict(), rule, settings, observers)


def _digest_of(record: bytes) -> bytes:
    return blake2b(record, digest_size=_DIGEST_BYTES).digest()
