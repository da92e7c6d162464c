"""What another rule would say of the pages of a state: its log is decided again, from its first record on.

    for was, now in verdicts_under(folder, rule):
        ...

Retractions, corrections, bounds of expiry and times apply at their places in the log, so the rule that was in force
all the time gives the verdicts that were given. Nothing is written in the folder, and another process may have it open:
the kept pages of the replay are in a temporary folder (TMPDIR).

A page that left the index, as a later visit replaced it, may have lost its evidence. What was decided of it and of its
copies is applied then, as it was.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from dedup_service._native import StoreLabel
from dedup_service.core.decision.decider import Decider
from dedup_service.core.index import keys_in
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.embedded.base_set import BaseSet
from dedup_service.runtime.embedded.commits import store_errors
from dedup_service.runtime.embedded.folder import PAGES_FOLDER, FolderKind, refuse_other_kind
from dedup_service.runtime.embedded.journal_reader import JournalReader, JournalRecord
from dedup_service.runtime.embedded.restore import state_in
from dedup_service.runtime.embedded.state_view import StateView, state_view
from dedup_service.runtime.store.stored_entries import StoredEntries


def verdicts_under(folder: Path, rule: MatchRule) -> Iterator[tuple[Verdict, Verdict | None]]:
    """Yield the verdict of each page of the state in `folder`, and the one under `rule`; None if it cannot be judged.

    Pages whose records were deleted are left out. StateError as `state_view`, and for bases that have changed.
    """
    refuse_other_kind(folder, FolderKind.EMBEDDED)
    with ExitStack() as stack:
        view = stack.enter_context(state_view(folder))
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="twinsieve-")))
        bases = stack.enter_context(closing(BaseSet.open(folder, (), view.header.space_id)))
        layout = IndexLayout.from_dict(view.log.policy()["layout"])
        pages, label = scratch / PAGES_FOLDER, StoreLabel(view.header.identity, view.header.space_id)
        if bases:
            bases.begin(view.header, view.log, pages, rule, layout)
        with store_errors():
            entries = stack.enter_context(closing(StoredEntries.open(pages, label, rule, layout)))
            extra = entries.take_extra()
            decider = Decider(
                rule,
                view.header.space_id,
                _Names(view.log, bases),
                layout=layout,
                entries=entries,
                state=state_in(extra) if extra else None,
                keep=view.log.keep_at(entries.sequence),
            )
            for sequence in bases.retracted():
                if decider.holds(sequence):
                    decider.drop(sequence)
            yield from _decided_again(view, decider, entries.sequence)


class _Names:
    """The names of the pages of a log and of its bases."""

    def __init__(self, log: JournalReader, bases: BaseSet) -> None:
        self._log, self._bases = log, bases

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of a page."""
        return self._bases.name(sequence) or self._log.name(sequence)


def _decided_again(view: StateView, decider: Decider, after: int) -> Iterator[tuple[Verdict, Verdict | None]]:
    """Apply the records of the log, those after `after` and all corrections; yield as `verdicts_under`."""
    corrections = {correction.sequence: correction.record for correction in view.log.corrections()}
    times = view.log.times_from(after)
    time = next(times, None)
    lost: set[int | str | None] = set()  # sequences and addresses of kept pages without evidence
    for sequence, correction in corrections.items():
        if sequence is not None and sequence <= after:
            decider.correct(correction)
    for record in view.log.records_after(after):
        while time is not None and time[0] < record.sequence:
            decider.advance(*time)
            time = next(times, None)
        was = None if record.prepared is None else view.log.verdict_at(record.sequence)
        if was is None or record.prepared is None:
            _apply(record, corrections.get(record.sequence), decider)
            continue
        page = _as_judged(view, record, record.prepared, was)
        if page is None:
            lost |= {record.sequence, was.url}
        elif record.kept:
            lost.discard(was.url)
        named = {
            was.duplicate_of_url if was.kind is VerdictKind.DUPLICATE else None,
            record.copy and record.copy.original,
        }
        if page is None or named & lost:
            removes = record.removes if record.removes and decider.holds(record.removes) else None
            decider.replay([(record.sequence, record.prepared)], [(record.kept, removes, record.copy)])
            yield was, None
        else:
            yield was, replace(decider.decide(record.sequence, page).verdict, id=was.id)


def _apply(record: JournalRecord, correction: CorrectionRecord | None, decider: Decider) -> None:
    """Apply a record that is no page."""
    removes = record.removes
    if correction is not None:
        decider.correct(correction)
        removes = decider.sequence_of(correction.url) if correction.duplicate else None
    if removes is not None and decider.holds(removes):
        decider.drop(removes)
    if record.keep is not None:
        decider.keep = record.keep


def _as_judged(view: StateView, record: JournalRecord, page: PreparedPage, was: Verdict) -> PreparedPage | None:
    """Return a page with all that a rule compares; None if that is not there any more."""
    is_judged = was.kind is not VerdictKind.UNDECIDED or was.guard is not None
    page = replace(page, reason=None if is_judged else was.reason)
    entry = view.committed(record.sequence) if record.kept and not (page.evidence or page.keys) else None
    if entry is not None:
        return replace(page, evidence=entry.evidence, keys=keys_in(entry))
    return page if page.evidence or not record.kept or not is_judged else None
