"""Enters the kept pages of a state's second and further bases behind those of the first one.

One run over all of them cannot be had: each base was decided without the others. Their kept pages follow those of the
first base in the log, as pages that were kept, so that the original of a copy is in the first base that has one. This
copies them once, when the state is begun. A page that has left the window has no more of its keys than those that led
to its cells; it is entered with these.

Hosts' own text is learned from the kept pages, the sizes of clusters of copies are those that the base has counted, and
times go on where those of an earlier base are not later. Other shares that guards look at are those of the first base.
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from dedup_service._native import Entry, StoreLabel, clusters_after
from dedup_service.core.decision.decider import Decider, DeciderState
from dedup_service.core.decision.guard_state import GuardState
from dedup_service.core.rules.guards import NO_GUARDS
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.runtime.embedded.bases import Base
from dedup_service.runtime.embedded.commits import store_errors
from dedup_service.runtime.embedded.restore import state_in
from dedup_service.runtime.store.decider_state import encode_state
from dedup_service.runtime.store.stored_entries import Report, StoredEntries, live_pieces

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
        entries = StoredEntries.open(pages, label, rule, layout)
        try:
            extra = entries.take_extra()
            state = state_in(extra) if extra else DeciderState()
            guards, after = state.guards, bases[0].records
            # Pages that are entered are no pages that were decided: guards count none of them.
            decider = Decider(
                replace(rule, guards=NO_GUARDS),
                label.space_id,
                _NoNames(),
                entries=entries,
                layout=layout,
                state=replace(state, guards=None),
            )
            for base in bases[1:]:
                _enter(base, after, decider, report)
                guards = _guards(base, after, guards)
                after += base.records
            state = replace(decider.state(), guards=guards)
            entries.begin_commit(sequence, tail, encode_state(state), decider.sizes())()
        finally:
            entries.close()


class _NoNames:
    """Page names for a decider that decides nothing."""

    def name(self, sequence: int) -> tuple[str, str]:
        """Return a placeholder."""
        return (str(sequence), "")


def _enter(base: Base, after: int, decider: Decider, report: Report) -> None:
    """Enter the pages of a base. after: records before those of the base."""
    done = 0
    for piece in _pieces(base):
        decider.enter(piece, after)
        done += len(piece)
        report(f"entering pages of base {base.name}", done, base.entries)
    for minute, since in struct.iter_unpack("=2q", base.state.expiry.times):
        decider.advance(after + since, minute)


def _pieces(base: Base) -> Iterator[list[Entry]]:
    """Yield the kept pages of a base, in order."""
    if base.manifest is None:
        return
    with closing(base.store(held=True)) as store:
        for numbers in live_pieces(store, _PIECE):
            yield store.entries(numbers)
    if base.state.young:
        yield list(base.state.young)


def _guards(base: Base, after: int, guards: GuardState | None) -> GuardState | None:
    """Return the guard state with the clusters of a base behind those that it has."""
    if guards is None or base.state.guards is None:
        return guards
    return replace(guards, groups=guards.groups + clusters_after(base.state.guards.groups, after))
