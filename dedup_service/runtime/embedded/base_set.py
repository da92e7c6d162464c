"""The bases of one open state: those that it was begun with, or is begun with now.

    bases = BaseSet.open(folder, ["s3://corpora/2025"], space_id)
    journal = Journal(..., beginning=bases.beginning)
    bases.begin(pages, label, ...)                    # once, for a state that has no kept pages yet
    bases.name(sequence)                              # while it decides

A state is begun with bases or without, once. When it is opened again, they need not be given: it knows where they were.
"""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from dedup_service._native import StoreLabel
from dedup_service.core.decision.bases import base_of
from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.runtime.addresses import is_address
from dedup_service.runtime.embedded.base_labels import BaseLabel
from dedup_service.runtime.embedded.bases import Base, begin_pages, beginning_of, download_base, open_base
from dedup_service.runtime.embedded.commits import store_errors
from dedup_service.runtime.embedded.database import SHARED_MEMORY, WRITE_AHEAD
from dedup_service.runtime.embedded.folder import JOURNAL_FILE, PAGES_FOLDER
from dedup_service.runtime.embedded.further_bases import enter_further
from dedup_service.runtime.embedded.journal import Beginning, Header, Journal
from dedup_service.runtime.embedded.journal_reader import JournalReader
from dedup_service.runtime.embedded.untouched import open_untouched
from dedup_service.runtime.store.page_files import lead_to

_DOWNLOADED = "bases"
"""The folder of a state in which bases from addresses are."""


class BaseSet:
    """Open bases, which `labels` are recorded of. is_new: whether the state is begun now."""

    def __init__(
        self, bases: Sequence[Base], labels: Sequence[BaseLabel], scratch: Path | None, *, is_new: bool = False
    ) -> None:
        self._bases, self._labels, self._scratch = bases, labels, scratch
        self.beginning: Beginning | None = None
        if bases and is_new:
            self.beginning = beginning_of(bases)
            self._labels = self.beginning.bases

    @classmethod
    def open(cls, folder: Path | None, given: Sequence[str | Path], space_id: str) -> Self:
        """Open the bases of the state in `folder`; None for one in memory. given: what the caller gives.

        ConfigurationError if they are not those that the state was begun with, or are the state itself; StateError if
        one of them has changed since; and as `open_base` and `download_base`.
        """
        known = _recorded(folder)
        names = [str(name) for name in given]
        if known is not None and names and not known:
            raise ConfigurationError(
                f"the state {folder} was begun without bases, and cannot be given any later: give another --state, "
                "which is begun with them"
            )
        if not names and not known:
            return cls((), (), None)
        if known and names and len(names) != len(known):
            raise ConfigurationError(
                f"the state {folder} was begun with the bases {', '.join(label.name for label in known)}: give these, "
                "in this order, or none; or give another --state"
            )
        scratch = Path(tempfile.mkdtemp(prefix="twinsieve-"))
        bases: list[Base] = []
        try:
            names = names or [label.name for label in known or ()]
            for number, name in enumerate(names):
                label = known[number] if known else None
                bases.append(_opened(folder, name, label, number, scratch, space_id))
            _refuse_twice(bases)
            labels = [_renamed(label, base) for label, base in zip(known or (), bases, strict=False)]
            return cls(bases, labels, scratch, is_new=known is None)
        except BaseException:
            for base in bases:
                base.journal.close()
            shutil.rmtree(scratch, ignore_errors=True)
            raise

    def __bool__(self) -> bool:
        return bool(self._bases)

    @property
    def folders(self) -> list[Path]:
        """Where the kept pages of the bases are."""
        return [base.pages for base in self._bases]

    @property
    def policy(self) -> dict[str, Any]:
        """The policy with which the state begins: that of the first base."""
        return {name: value for name, value in self._bases[0].policy.items() if name != "lowered"}

    @property
    def scratch(self) -> Path | None:
        """A folder for files of this process, which `close` deletes; None without bases."""
        return self._scratch

    def adopt(self, journal: Journal, pages: Path) -> None:
        """Let a state that was opened again know where its bases are now. pages: its folder of kept pages."""
        with store_errors():
            lead_to(pages, self._bases[0].pages)
        if tuple(self._labels) != journal.log.bases:
            journal.rename_bases(self._labels)

    def retracted(self) -> set[int]:
        """Return the pages that bases have retracted by now; costs little if nothing was written there."""
        pairs = zip(self._labels, self._bases, strict=True)
        return {label.after + page for label, base in pairs for page in base.retracted}

    def begin(self, header: Header, log: JournalReader, pages: Path, rule: MatchRule, layout: IndexLayout) -> None:
        """Make the kept pages as they are before the first record of a journal, in `pages`."""
        first = self._labels[-1].after + self._labels[-1].records + 1
        label, tail = StoreLabel(header.identity, header.space_id), log.tail(first)
        work = pages.with_name(pages.name + ".new")
        shutil.rmtree(work, ignore_errors=True)
        begin_pages(self._bases[0], work, label, first, tail)
        if len(self._bases) > 1:
            enter_further(self._bases, work, label, first, tail, rule, layout)
        if work.exists():
            work.replace(pages)

    def name(self, sequence: int) -> tuple[str, str] | None:
        """Return (id, url) of a page of a base; None for a page of the state itself."""
        for label, base in zip(self._labels, self._bases, strict=True):
            if base_of([label], sequence) is not None:
                return base.journal.name(sequence - label.after)
        return None

    def base_name(self, sequence: int | None) -> str | None:
        """Return the name of the base that has a page; None for a page of the state itself, and for None."""
        label = base_of(self._labels, sequence)
        return None if label is None else label.name

    def undo(self, folder: Path | None) -> None:
        """Delete what a state that could not be begun has in `folder`, so that it can be begun with other bases."""
        if folder is None or self.beginning is None:
            return
        for suffix in ("", WRITE_AHEAD, SHARED_MEMORY):
            (folder / (JOURNAL_FILE + suffix)).unlink(missing_ok=True)
        for name in (PAGES_FOLDER, f"{PAGES_FOLDER}.new", _DOWNLOADED):
            shutil.rmtree(folder / name, ignore_errors=True)

    def close(self) -> None:
        """Close all files. A second call does nothing."""
        for base in self._bases:
            base.journal.close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)


def _recorded(folder: Path | None) -> tuple[BaseLabel, ...] | None:
    """Return the bases that the state in `folder` was begun with; None if it is new."""
    journal = None if folder is None else folder / JOURNAL_FILE
    if journal is None or not journal.exists() or not journal.stat().st_size:
        return None
    database = open_untouched(journal)
    try:
        has_any = database.first("SELECT count(*) FROM sqlite_master WHERE name = 'meta'")
        return JournalReader(database, "").bases if has_any and has_any[0] else None
    finally:
        database.close()


def _opened(folder: Path | None, name: str, label: BaseLabel | None, number: int, scratch: Path, space_id: str) -> Base:
    """Open one base. label: what is recorded of it; None for a new state."""
    if label is not None and name == label.name and Path(label.folder).exists():
        place = Path(label.folder)
    elif is_address(name):
        place = (scratch if folder is None else folder / _DOWNLOADED) / str(number + 1)
        place.parent.mkdir(exist_ok=True)
        download_base(name, place)
    else:
        place = Path(name)
    if folder is not None and place.resolve() == folder.resolve():
        raise ConfigurationError(f"the base {name} is the state itself: give another folder, or leave it out")
    if folder is not None and folder.resolve().is_relative_to(place.resolve()):
        raise ConfigurationError(f"the state {folder} is in the folder of the base {name}: give one outside of it")
    base = open_base(name, place, scratch, space_id)
    if label is None:
        return base
    try:
        return _as_it_was(folder, label, base)
    except BaseException:
        base.journal.close()
        raise


def _as_it_was(folder: Path | None, label: BaseLabel, base: Base) -> Base:
    if base.journal.header.identity != label.log:
        raise ConfigurationError(
            f"the state {folder} was begun with the base {label.name}, {base.name} is another one: give that, or "
            "another --state"
        )
    same = base.as_at(label.records, label.commit)
    if same is None:
        raise StateError(
            f"the base {base.name} has changed since the state {folder} was begun with it: it was at record "
            f"{label.records} and is at {base.records}. Give a copy of it as it was, or one that has only retracted "
            "pages since, with --base, or begin a new state"
        )
    return same


def _refuse_twice(bases: Sequence[Base]) -> None:
    seen: dict[str, str] = {}
    for base in bases:
        other = seen.setdefault(base.journal.header.identity, base.name)
        if other != base.name or sum(base.journal.header.identity == one.journal.header.identity for one in bases) > 1:
            raise ConfigurationError(f"the bases {other} and {base.name} are one state: give it once")


def _renamed(label: BaseLabel, base: Base) -> BaseLabel:
    return msgspec.structs.replace(label, name=base.name, folder=str(base.folder))
