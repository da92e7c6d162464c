"""Enters the kept pages of a state's second and further bases behind those of the first one.

One run over all of them cannot be had: each base was decided without the others. Their kept pages follow those of the
first base in the log, as pages that were kept, so that the original of a copy is in the first base that has one. This
copies them once, when the state is begun. A page that has left the window has no more of its keys than those that led
to its cells; it is entered with these.

Hosts' own text is learned from the kept pages, the sizes of clusters of copies are those that the base has counted, and
times go on where those of an earlier base are not later. Other shares that guards look at are those of the first base.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from dedup_service.core.decision.candidates import LocalCandidates
from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.decision.duplicate_clusters import DuplicateClusters
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.decision.expiry import Expiry
from dedup_service.core.decision.guard_tracker import GuardState
from dedup_service.core.decision.host_text import HostText
from dedup_service.core.decision.page_columns import PageColumns
from dedup_service.core.evidence.keys import LEVELS, PARTS
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.index.cell_index import EMPTY_PART, path_keys
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.runtime.embedded.bases import Base
from dedup_service.runtime.embedded.commits import store_errors
from dedup_service.runtime.embedded.restore import state_in
from dedup_service.runtime.store.decider_state import encode_state
from dedup_service.runtime.store.manifest import StoreLabel
from dedup_service.runtime.store.stored_entries import Report, StoredEntries

_PIECE = 512
"""Pages that are entered together."""


def enter_further(
    bases: Sequence[Base],
    pages: Path,
    label: StoreLabel,
    sequence: int,
    tail: str,
    rule: MatchRule,
    layout: IndexLayout,
    report: Report = lambda *_: None,
) -> None:
    """Enter the kept pages of all bases but the first, whose pages are in `pages`, and commit the store there.

    label, sequence, tail: of the journal of the state, and of its first policy. rule, layout: of the state.
    """
    with store_errors():
        entries = StoredEntries.open(pages, label, rule, layout, lambda extra: state_in(extra).removed if extra else ())
        try:
            state = state_in(entries.extra()) if entries.extra() else DeciderState()
            young = [EntryRows.from_entries(state.young)] if state.young else ()
            candidates = LocalCandidates(
                rule, young, store=entries, tables=entries.tables, layout=layout, removed=state.removed
            )
            after = bases[0].records
            for base in bases[1:]:
                state = _entered(base, after, state, candidates, report)
                after += base.records
            state = replace(state, young=tuple(candidates.young()), removed=tuple(candidates.removed()))
            entries.begin_commit(sequence, tail, encode_state(state)).finish()
        finally:
            entries.close()


def _entered(base: Base, after: int, state: DeciderState, candidates: LocalCandidates, report: Report) -> DeciderState:
    """Enter the pages of a base; return the state of a decider behind them. after: records before those of the base."""
    ordinal, host_text = state.ordinal, HostText(state.host_text)
    nothing = PageColumns.of_entries([])
    for piece in _pieces(base):
        added = []
        for place, entry in enumerate(piece):
            keys = keys_in(entry)
            added.append(
                replace(
                    entry,
                    sequence=after + entry.sequence,
                    ordinal=ordinal + place,
                    keys=keys,
                    settled=False,
                    row=-1,
                )
            )
            evidence = Evidence(entry.evidence)
            sentences = evidence.sentence_values
            if len(sentences):
                host_text.learn(entry.host, evidence.term_values, keys, sentences)
        candidates.settle(ordinal, nothing)
        candidates.keep(PageColumns.of_entries(added))
        ordinal += len(added)
        report(f"entering pages of base {base.name}", ordinal - state.ordinal, base.entries)
    candidates.settle(ordinal, nothing)
    expiry = Expiry(state=state.expiry)
    for minute, since in np.frombuffer(base.state.expiry.times, np.int64).reshape(-1, 2).tolist():
        expiry.advance(after + since, minute)
    return replace(
        state,
        ordinal=ordinal,
        host_text=host_text.state(),
        guards=_guards(base, after, state.guards),
        expiry=expiry.state(),
    )


def _pieces(base: Base) -> Iterator[list[Entry]]:
    """Yield the kept pages of a base, in order."""
    if base.manifest is None:
        return
    with closing(base.store()) as store:
        for numbers in store.live_numbers():
            for start in range(0, len(numbers), _PIECE):
                yield list(store.entries(numbers[start : start + _PIECE]).entries())
    if base.state.young:
        yield list(base.state.young)


def keys_in(entry: Entry) -> bytes:
    """Return the packed keys that are known of an entry: of a settled one, those of its path, and 0 for the others."""
    if not entry.settled or not entry.keys:
        return entry.keys
    found = path_keys(entry.keys)
    keys = np.zeros((PARTS, LEVELS), "<u4")
    at = 0
    for part, level in enumerate(entry.keys[:PARTS]):
        count = level + 1 if level < EMPTY_PART else level - EMPTY_PART
        keys[part, :count] = found[at : at + count]
        at += count
    return keys.tobytes()


def _guards(base: Base, after: int, guards: GuardState | None) -> GuardState | None:
    """Return the guard state with the clusters of a base behind those that it has."""
    if guards is None or base.state.guards is None:
        return guards
    clusters = DuplicateClusters(base.state.guards.groups).pack_after(after)
    return replace(guards, groups=guards.groups + clusters)
