"""From a prepared page to its verdict: what the native decider says of it, with the names of the kept pages.

A kept page has an entry, which later pages are compared with. A page of a new URL is kept if and only if no
earlier kept page matches it; corrections and repeat visits decide first. A page without text has no entry.
A known URL is one with a kept visit: the same body again is `unchanged`; another body is `updated`, and its
entry replaces the earlier one. A URL whose visits were all duplicates stays unknown, so a copy that is
fetched again is a `duplicate` again and is never passed on as `unchanged` (docs/adr/0007).

A page is identified by its own URL. If that is unknown, the page may be a visit of the known URL that it
claims (rel=canonical): `unchanged` or `updated`, provided that the rule accepts the two texts. Otherwise the
claim is refused, the reason says so, and the page is judged like any other. Either way the entry of the
claimed URL stays: no page replaces another by naming it (docs/adr/0018).

A match that a guard does not accept makes the page `undecided`. It is passed on but adds no entry, so it
never becomes an original, and the page that it matched continues to count such copies (docs/adr/0015).
Overrides take precedence over guards.

Entries beyond the bounds of `Keep` expire with the pages that come (`expiry`); that is a removal like any other.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from dedup_service import _native
from dedup_service._native import Entry
from dedup_service.core.decision.entries import RemovedEntry
from dedup_service.core.decision.entry_store import EntryStore, HeldEntries, HeldValues
from dedup_service.core.decision.expiry import ExpiryReason, ExpiryState
from dedup_service.core.decision.guard_state import Copy, GuardState
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.errors import StateError
from dedup_service.core.evidence.keys import LEVELS
from dedup_service.core.index.block_index import IndexStatistics
from dedup_service.core.index.cell_index import CellStatistics, keys_in
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import CHANNELS, PreparedPage
from dedup_service.core.record_columns import BODY, BODY_HASH, TEXT_HASH, WORDS, RecordColumns
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.url import url_and_host_hash, url_hash
from dedup_service.core.verdict import (
    Distance,
    Guard,
    Verdict,
    VerdictKind,
    guard_reason,
    refused_claim_reason,
    visit_by_claim_reason,
)

Batch = Sequence[tuple[int, PreparedPage]]
"""Pages that are decided next: (sequence, page), ascending."""

Effect = tuple[bool, int | None, Copy | None]
"""What a decision did: whether the page has an entry, the sequence of the entry that it replaced, and the `Copy`."""

_PIECE_ROWS = 1 << 12
"""Entries that a view reads at a time."""

_GUARD_TEXTS = {
    Guard.TITLES: "pages under about {} other titles match {}, more than {}",
    Guard.HOSTS: "pages of about {} hosts match {}, more than {}",
    Guard.PAGES: "about {} pages match {}, more than {}",
    Guard.SURGE: "{}% of the last 1000 pages are suspicious copies, usually {}%; this one of {}",
}


class PageNames(Protocol):
    """Looks up what a page of the log is called: its id and URL."""

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the kept page at `sequence`."""
        ...


class MutablePageNames(PageNames, Protocol):
    """Page names that a replica adds to; a decider only looks them up."""

    def add(self, sequence: int, page_id: str, url: str) -> None:
        """Store the id and URL of the kept page at `sequence`."""
        ...

    def erase(self, sequence: int) -> None:
        """Erase the id and URL of the page at `sequence`, which was retracted."""
        ...


@dataclass(slots=True)
class Decision:
    """A verdict and its effect on the entries. Nobody changes it; to freeze it would triple the time to make one.

    original: sequence of the kept page or earlier visit that the verdict names, or None.
    kept: whether the page has an entry.
    replaces: sequence of the entry that an update removed, or None; an update by claim removes none.
    copy: what the guard tracker recorded of a matching page, accepted or not; None without guards.
    """

    verdict: Verdict
    original: int | None = None
    kept: bool = False
    replaces: int | None = None
    copy: Copy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeciderState:
    """The state of a decider without its settled entries.

    ordinal: pages decided. young: live entries that are not settled, which a store does not have. removed: removed
    entries that the cells still need. host_text: packed, see `HostText.state`. guards: the guard state; None if the
    rule has no guards. expiry: what expired, and times. candidates: what candidates elsewhere need beside that.
    """

    ordinal: int = 0
    young: tuple[Entry, ...] = ()
    removed: tuple[RemovedEntry, ...] = ()
    host_text: bytes = b""
    guards: GuardState | None = None
    expiry: ExpiryState = field(default_factory=ExpiryState)
    candidates: bytes = b""


@dataclass(frozen=True, slots=True)
class CandidateSizes:
    """Sizes of the indexes. channels: block index by channel. cells: of the cell index. memory: bytes by structure."""

    channels: dict[str, IndexStatistics]
    cells: CellStatistics
    memory: dict[str, int]

    @classmethod
    def of(cls, sizes: Any, name: str = "rows") -> "CandidateSizes":
        """Return native sizes. name: of what the entries take beside the tables."""
        near, cells, (urls, texts, bodies), entries = sizes
        channels = {
            channel: IndexStatistics(*sizes) for channel, sizes in zip(CHANNELS, near, strict=True) if sizes is not None
        }
        of_cells = CellStatistics(*cells)
        memory = {
            "cells": of_cells.bytes - of_cells.sieve_bytes,
            "sieves": of_cells.sieve_bytes,
            **{f"blocks_{channel}": index.bytes for channel, index in channels.items()},
            "urls": urls,
            "texts": texts,
            "bodies": bodies,
            name: entries,
        }
        return cls(channels, of_cells, memory)


class SettledElsewhere(Protocol):
    """The settled entries of a decider that other processes have.

    begun: how many they are, how many live entries they have, and the state of their answers; None before the first.
    """

    begun: tuple[int, int, bytes | None]

    def opened(self, decider: _native.Decider) -> None:
        """Take the decider that was made with `begun`."""
        ...

    def state(self) -> bytes:
        """Return what is needed beside the rest of the decider's state to go on."""
        ...


class Decider:
    """Decides pages in the order of their sequence numbers, and keeps the entries of kept pages.

    rule: makes a candidate a match. space_id: of every fingerprint. names: of kept pages.
    entries: has the settled entries, as they are at some place of the log; None keeps them in memory, where `restored`
    are the live ones there. layout: of the index, the same for a whole log.
    elsewhere: other processes have the settled entries. state: at that place. overrides: corrections in force. keep:
    bounds of expiry.
    """

    def __init__(
        self,
        rule: MatchRule,
        space_id: str,
        names: PageNames,
        *,
        layout: IndexLayout | None = None,
        restored: Iterable[Sequence[Entry]] = (),
        state: DeciderState | None = None,
        overrides: Overrides | None = None,
        entries: EntryStore | None = None,
        elsewhere: SettledElsewhere | None = None,
        keep: Keep = KEEP_ALL,
    ) -> None:
        state, layout = state or DeciderState(), layout or IndexLayout()
        self.rule, self.space_id, self._names, self._keep, self._entries = rule, space_id, names, keep, entries
        given = [entry for piece in restored for entry in piece]
        young = {entry.sequence: entry for entry in (*(one for one in given if not one.settled), *state.young)}
        guards, expiry = state.guards, state.expiry
        self._native = _native.Decider(
            _native.Rule(rule),
            window=layout.window,
            slots=layout.slots,
            levels=LEVELS,
            store=None if entries is None else entries.pages,
            tables=None if entries is None else entries.tables,
            answered=None if elsewhere is None else elsewhere.begun,
            ordinal=state.ordinal,
            settled=[entry for entry in given if entry.settled],
            young=list(young.values()),
            removed=[(one.ordinal, one.entry) for one in state.removed],
            host_text=state.host_text,
            guards=None if guards is None else guards.fields(),
            expiry=(expiry.up_to, expiry.times, expiry.by_count, expiry.by_age),
            max_pages=keep.max_pages,
            max_age_minutes=keep.max_age_minutes,
        )
        self._elsewhere = elsewhere
        if elsewhere is not None:
            elsewhere.opened(self._native)
        for record in () if overrides is None else overrides.records:
            self.correct(record)

    def __len__(self) -> int:
        return len(self._native)

    @property
    def keep(self) -> Keep:
        """The bounds of expiry in force."""
        return self._keep

    @keep.setter
    def keep(self, keep: Keep) -> None:
        self._keep = keep
        self._native.set_keep(keep.max_pages, keep.max_age_minutes)

    @property
    def minute(self) -> int | None:
        """The latest time of the log, in minutes since 1970; None before any."""
        return self._native.minute()

    def advance(self, sequence: int, minute: int) -> bool:
        """Set the latest time for pages after `sequence`; False, and no effect, unless it is later than any before."""
        return self._native.advance(sequence, minute)

    @property
    def expired(self) -> dict[ExpiryReason, int]:
        """Entries that expired so far, by reason."""
        return dict(zip((ExpiryReason.COUNT, ExpiryReason.AGE), self._native.expired(), strict=True))

    @property
    def expired_up_to(self) -> int:
        """Sequence of the last entry that expired, -1 before any: no entry up to it is live."""
        return self._native.expired_up_to()

    def host_text(self) -> _native.HostText:
        """Return a copy of what is known of the hosts' own text; some milliseconds at most."""
        return self._native.host_text()

    def set_guards(self, guards: Guards) -> None:
        """Replace the guards of the rule from the next page on; what was counted so far stays counted."""
        self.set_rule(replace(self.rule, guards=guards))

    def set_rule(self, rule: MatchRule) -> None:
        """Replace the rule from the next page on; an index that it probes and that is not there is built."""
        if rule != self.rule:
            self._native.set_rule(_native.Rule(rule))
            self.rule = rule

    def correct(self, record: CorrectionRecord) -> None:
        """Put a correction in force; those that it contradicts are in force no more."""
        self._native.correct(url_hash(record.url), url_hash(record.original), record.duplicate)

    def sequence_of(self, canonical_url: str) -> int | None:
        """Return the sequence of the kept visit of a canonical URL, or None if the URL is unknown."""
        return self._native.visit(url_hash(canonical_url))

    def entry(self, sequence: int) -> Entry | None:
        """Return the live entry of the page at `sequence`, or None."""
        return self._native.entry(sequence)

    def holds(self, sequence: int) -> bool:
        """Whether the page at `sequence` has a live entry."""
        return self._native.holds(sequence)

    def decide(self, sequence: int, prepared: PreparedPage) -> Decision:
        """Decide a page and apply the decision; `sequence` is larger than any before."""
        (decision,) = self.decide_all([(sequence, prepared)])
        return decision

    def decide_all(self, pages: Batch) -> Generator[Decision, None, None]:
        """Decide pages one after another; yield each decision. All of them are decided when the first one is yielded.

        A page's name is stored before the next decision is asked for: that may name it.
        """
        done = 0
        for decision in self.decide_runs(pages):
            if isinstance(decision, Decision):
                yield decision
                done += 1
                continue
            for sequence, prepared in pages[done : done + decision]:
                verdict = self.unique_verdict(sequence, prepared.page.id, prepared.page.url)
                yield Decision(verdict, kept=True)
            done += decision

    def decide_runs(self, pages: Batch | RecordColumns) -> Generator[Decision | int, None, None]:
        """Decide pages as `decide_all` does; of unique pages that follow each other, yield how many there are.

        Their verdicts say nothing but what `unique_verdict` returns, and they are kept; so nothing is made of them.
        """
        found = self._native.decide_batch(native_pages(pages))
        several = 0
        for place, one in enumerate(found):
            if one is None:
                several += 1
                continue
            if several:
                yield several
                several = 0
            page = pages.numbered_page(place) if isinstance(pages, RecordColumns) else pages[place]
            yield self._decision(*page, one)
        if several:
            yield several
        self._native.raise_stopped()

    def unique_verdict(self, sequence: int, page_id: str, url: str) -> Verdict:
        """Return the verdict on a page that matches nothing, nor nearly."""
        return Verdict(sequence=sequence, id=page_id, url=url, kind=VerdictKind.UNIQUE, space=self.space_id)

    def replay(self, pages: Batch, effects: Sequence[Effect]) -> None:
        """Apply decisions that were made before: the same state follows as from `decide_all`.

        KeyError if a page replaced an entry that there is not.
        """
        packed = [(kept, removes, None if copy is None else copy.pack()) for kept, removes, copy in effects]
        self._native.apply(native_pages(pages), packed)

    def enter(self, entries: Sequence[Entry], after: int = 0) -> None:
        """Keep entries of another log as pages that come next, in order, with `after` added to their sequences."""
        pages = [
            _native.Page(
                after + entry.sequence,
                entry.words,
                entry.body,
                entry.body_hash,
                entry.text_hash,
                entry.url_hash,
                entry.host << 32,
                entry.evidence,
                keys_in(entry),
                claim=None,
                is_judged=entry.indexed,
            )
            for entry in entries
        ]
        self._native.apply(pages, [(True, None, None)] * len(pages))

    def candidates(self, sequence: int, prepared: PreparedPage) -> list[int]:
        """Return the sequences of the live entries that are compared with a page, which is not decided."""
        (page,) = native_pages([(sequence, prepared)])
        return self._native.candidates(page)

    def drop(self, sequence: int) -> None:
        """Remove the entry of the page at `sequence`; KeyError if it has none."""
        self._native.remove(sequence)

    def drop_expired(self, up_to: int) -> None:
        """Remove all entries up to a sequence: what a log says whose records of them are gone."""
        self._native.remove_expired(up_to)

    def retract(self, sequence: int) -> None:
        """Remove the entry of the page at `sequence`; StateError if it has none (any more)."""
        try:
            self._native.remove(sequence)
        except KeyError:
            raise StateError(
                f"page {sequence} has no entry to retract: it was not kept, or its entry was removed already"
            ) from None

    def state(self) -> DeciderState:
        """Return the state without the settled entries."""
        return self.note_state()()

    def note_state(self) -> Callable[[], DeciderState]:
        """Note the present state without the settled entries, within milliseconds.

        What is returned makes it of that, in any thread.
        """
        return partial(_state_of, self._native.state(), b"" if self._elsewhere is None else self._elsewhere.state())

    def held(self) -> HeldEntries:
        """Return a view of the live entries, within milliseconds for any number of them on disk."""
        young = HeldValues(tuple(self._native.young()))
        if self._entries is not None:
            return HeldEntries((*self._entries.held().parts, young))
        return HeldEntries((*(HeldValues(tuple(piece)) for piece in self._settled()), young))

    def sizes(self) -> CandidateSizes:
        """Return the sizes of the indexes; takes about 1 ms. Fingerprints of the window count, too."""
        sizes = CandidateSizes.of(self._native.sizes(), "entries" if self._entries is None else "rows")
        return replace(sizes, memory={**sizes.memory, "host_text": self._native.host_text_bytes()})

    def _settled(self) -> Iterator[list[Entry]]:
        """Yield the settled entries in memory, some at a time."""
        first = 0
        while (piece := self._native.piece(first, _PIECE_ROWS)) is not None:
            last, entries = piece
            yield entries
            first = last + 1

    def _decision(self, sequence: int, prepared: PreparedPage, one: _native.Decided) -> Decision:
        """Return what became of a page, with the names of others."""
        page, kind = prepared.page, VerdictKind(one.kind)
        reason = one.reason
        if one.guard is not None and one.named is not None:
            guard, size, limit = Guard(one.guard[0]), *one.guard[1:]
            name = self._names.name(one.named)[0]
            values = (size, limit, name) if guard is Guard.SURGE else (size, name, limit)
            reason = guard_reason(guard, _GUARD_TEXTS[guard].format(*values))
        elif one.named is not None:
            reason = f"{reason} {self._names.name(one.named)[0]}"
        elif one.by_claim:
            reason = visit_by_claim_reason(reason or "")
        elif reason is None and kind is VerdictKind.UNDECIDED:
            reason = prepared.reason or "no text"
        if one.claim_refused:
            reason = refused_claim_reason(reason)
        original_id, original_url = (None, None) if one.original is None else self._names.name(one.original)
        verdict = Verdict(
            sequence=sequence,
            id=page.id,
            url=page.url,
            kind=kind,
            space=self.space_id,
            duplicate_of=original_id,
            duplicate_of_url=original_url,
            distance=Distance(one.words, one.body),
            score=one.score,
            reason=reason,
        )
        copy = None if one.copy is None else Copy.unpack(one.copy)
        return Decision(verdict, one.original, one.kept, one.replaces, copy)


def _state_of(copy: _native.StateCopy, candidates: bytes) -> DeciderState:
    ordinal, young, removed, host_text, guards, expiry = copy.fields()
    up_to, times, by_count, by_age = expiry
    return DeciderState(
        ordinal=ordinal,
        young=tuple(young),
        removed=tuple(RemovedEntry(at, entry) for at, entry in removed),
        host_text=host_text,
        guards=None if guards is None else GuardState.of(guards),
        expiry=ExpiryState(up_to=up_to, times=times, by_count=by_count, by_age=by_age),
        candidates=candidates,
    )


def native_pages(pages: Batch | RecordColumns) -> list[_native.Page]:
    """Return pages as the native decider takes them."""
    if isinstance(pages, RecordColumns):
        return _pages_of(pages)
    return [
        _page(
            sequence,
            prepared.fingerprint.words,
            prepared.fingerprint.body,
            prepared.body_hash,
            prepared.text_hash,
            prepared.page.canonical_url,
            prepared.page.claimed_url,
            prepared.evidence,
            prepared.keys,
            is_judged=prepared.reason is None,
        )
        for sequence, prepared in pages
    ]


def _pages_of(columns: RecordColumns) -> list[_native.Page]:
    present = columns.present.tolist()
    rows: Any = zip(
        columns.sequences.tolist(),
        _known(columns.words.tolist(), present, WORDS),
        _known(columns.bodies.tolist(), present, BODY),
        _known(columns.body_hashes.tolist(), present, BODY_HASH),
        _known(columns.text_hashes.tolist(), present, TEXT_HASH),
        columns.canonical_urls,
        columns.claimed_urls,
        columns.evidence,
        columns.keys,
        strict=True,
    )
    return [_page(*row, is_judged=reason is None) for row, reason in zip(rows, columns.reasons, strict=True)]


def _known(values: list[int], present: list[int], flag: int) -> list[int | None]:
    return [value if flags & flag else None for value, flags in zip(values, present, strict=True)]


def _page(
    sequence: int,
    words: int | None,
    body: int | None,
    body_hash: int | None,
    text_hash: int | None,
    canonical_url: str,
    claimed_url: str | None,
    evidence: bytes,
    keys: bytes,
    *,
    is_judged: bool,
) -> _native.Page:
    url, host = url_and_host_hash(canonical_url)
    claim = None if claimed_url is None else url_hash(claimed_url)
    return _native.Page(
        sequence,
        words,
        body,
        body_hash,
        text_hash,
        url,
        host,
        evidence,
        keys,
        claim=claim,
        is_judged=is_judged,
    )
