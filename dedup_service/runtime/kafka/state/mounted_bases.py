"""The bases of a log in one process: opened, compared with what the log says of them, and never changed.

    bases = MountedBases.open(policy.bases, {"corpus": "/srv/corpus"}, folder, space_id)
    replica = Replica(bases.names(names), bases=bases.begun, ...)
    bases.make(pages, label, policy)          # once, for a folder of kept pages that is begun

The log of a service goes on where its bases ended, as the journal of a state does (`embedded.bases`): new kept pages
go on from those of the first base, those of further bases are entered behind them, and the decider begins with the
state of its last commit. Names of pages of a base are read from its journal.

A process that has not the bases of the log as they were when it was begun must not decide: `BaseUnusableError` says
which one is missing or another one. A base that has only retracted pages since is the same one. These are absent for
whoever starts; a process that decides lets the log lose them (`retracted`), so that all that run do at one place.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from dedup_service._native import Manifest, PageStore, StoreLabel
from dedup_service.core.decision.bases import BasedState, base_of
from dedup_service.core.decision.decider import DeciderState, MutablePageNames
from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.log_records import LogBase, Policy
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.runtime.addresses import AddressUnreachableError, is_address
from dedup_service.runtime.embedded.bases import (
    Base,
    begin_pages,
    download_base,
    open_base,
    remote_manifest,
    state_now,
)
from dedup_service.runtime.embedded.commits import store_errors
from dedup_service.runtime.embedded.further_bases import enter_further
from dedup_service.runtime.embedded.journal_reader import keep_of
from dedup_service.runtime.memory_limit import ProcessMemoryLimit
from dedup_service.runtime.store.errors import translated_os_errors
from dedup_service.runtime.store.page_files import MANIFEST, StoreSizes, lead_to, open_pages
from dedup_service.runtime.store.stored_entries import Report

BASE_OPTION = "--base"

BASES_FOLDER = "bases"
"""The folder of a process in which bases from addresses are, and what is made of bases."""

_SCRATCH, _BEGUN = "scratch", "begun"


class BaseUnusableError(StateError):
    """A base of the log is not there, or is another one. The process goes on once it is there as it was."""


class GivenBases(dict[str, str]):
    """Where the bases of a log are, folder or address by name. given_by: the option or variable that says so."""

    def __init__(self, places: Mapping[str, str] | None = None, *, given_by: str = BASE_OPTION) -> None:
        super().__init__(places or {})
        self.given_by = given_by


def given_by(bases: Mapping[str, str]) -> str:
    """Return what gives bases: the option, unless `bases` says otherwise."""
    return bases.given_by if isinstance(bases, GivenBases) else BASE_OPTION


@dataclass(frozen=True, slots=True)
class BaseOffer:
    """What a log begins with that goes on from bases: space, rule, layout and bounds are those of the first one."""

    bases: tuple[LogBase, ...]
    space_id: str
    rule: MatchRule
    layout: IndexLayout
    keep: Keep


class MountedBases:
    """Open bases. folder: for what is made of them. report: is told of what takes long. Use `open`."""

    def __init__(self, bases: Sequence[Base], places: Sequence[LogBase], folder: Path, report: Report) -> None:
        self._bases, self._places, self._folder = bases, places, folder
        self.report = report

    @classmethod
    def open(
        cls,
        expected: Sequence[LogBase],
        given: Mapping[str, str],
        folder: Path,
        space_id: str,
        report: Report = lambda *_: None,
    ) -> Self:
        """Open the bases of a log. given: folder or address by name. folder: for files of this process.

        BaseUnusableError if one is not given, cannot be opened, or is not as the log says.
        """
        scratch = _scratch(folder)
        bases: list[Base] = []
        try:
            for number, base in enumerate(expected, 1):
                bases.append(_mounted(base, given, folder / str(number), scratch, space_id, report))
                bases[-1] = _as_it_was(base, bases[-1], given[base.name], folder / str(number), scratch)
        except BaseException:
            for opened in bases:
                opened.journal.close()
            raise
        return cls(bases, expected, folder, report)

    def begun(self, log: str, policy: Policy) -> BasedState:
        """Return what the log begins with. log: its identity. policy: its first one."""
        corrections = [
            correction.record
            for base in self._bases
            for correction in base.journal.log.corrections()
            if correction.sequence is not None and correction.sequence <= base.records
        ]
        state = self._bases[0].state
        if len(self._bases) > 1:
            state = self._entered(StoreLabel(log, policy.space_id), policy)
        expiry = replace(state.expiry, by_count=0, by_age=0)  # what expires here is counted
        return BasedState(replace(state, expiry=expiry), tuple(corrections))

    def make(self, pages: Path, label: StoreLabel, policy: Policy) -> None:
        """Make the kept pages of a log before its first record, in the folder `pages`, which is created."""
        work = self._work(label, policy)
        if work.exists():
            with translated_os_errors(pages):
                work.replace(pages)

    @contextmanager
    def pages(self, label: StoreLabel, policy: Policy) -> Iterator[PageStore | None]:
        """Open the kept pages of all bases, to be read; None if there are none. Deletes what was made for that."""
        work = self._work(label, policy)
        if not work.exists():
            yield None
            return
        store = open_pages(work, label, held=True)
        assert store is not None
        with closing(store):
            yield store
        _delete(work)

    def adopt(self, pages: Path) -> None:
        """Let kept pages that were begun with these bases lead to where they are now."""
        lead_to(pages, self._bases[0].pages)

    def retracted(self) -> set[int]:
        """Return the pages that bases have retracted by now; costs little if nothing was written there."""
        pairs = zip(self._places, self._bases, strict=True)
        return {place.after + page for place, base in pairs for page in base.retracted}

    def admit(self, memory: ProcessMemoryLimit) -> None:
        """Raise MemoryLimitError if the tables of a base do not fit; what is not known is not judged here."""
        for base in self._bases:
            sizes = None if base.manifest is None else StoreSizes.of(base.manifest)
            if sizes is not None:
                memory.admit(sizes.memory, sizes.live)

    def folder_of(self, sequence: int) -> tuple[Path, int] | None:
        """Return the folder of the base that has a page, and its sequence there; None for a page of the log itself."""
        found = base_of(self._places, sequence)
        return None if found is None else (self._bases[self._places.index(found)].folder, sequence - found.after)

    def name(self, sequence: int) -> tuple[str, str] | None:
        """Return (id, url) of a page of a base; None for a page of the log itself."""
        found = base_of(self._places, sequence)
        if found is None:
            return None
        return self._bases[self._places.index(found)].journal.name(sequence - found.after)

    def names(self, names: MutablePageNames) -> MutablePageNames:
        """Return `names` with those of the pages of bases."""
        return _Names(self, names)

    def close(self) -> None:
        """Close all files; a second call does nothing."""
        for base in self._bases:
            base.journal.close()
        with suppress(OSError):
            shutil.rmtree(self._folder / _SCRATCH)

    def _work(self, label: StoreLabel, policy: Policy) -> Path:
        """Return a folder with the kept pages of all bases; it is not there if they have none."""
        work = self._folder / _BEGUN
        if len(self._bases) == 1:
            _delete(work)
            begin_pages(self._bases[0], work, label, -1, "")
        elif not (work / MANIFEST).exists():
            self._entered(label, policy)
        return work

    def _entered(self, label: StoreLabel, policy: Policy) -> DeciderState:
        """Make the kept pages of several bases; return the state of the decider behind them."""
        work = self._folder / _BEGUN
        _delete(work)
        begin_pages(self._bases[0], work, label, -1, "")
        enter_further(self._bases, work, label, -1, "", policy.rule, policy.layout, self.report)
        with store_errors():
            return state_now(work)


class _Names:
    """The names of a log with bases: those of its own pages can be added and erased."""

    def __init__(self, bases: MountedBases, names: MutablePageNames) -> None:
        self._bases, self._names = bases, names

    def name(self, sequence: int) -> tuple[str, str]:
        return self._bases.name(sequence) or self._names.name(sequence)

    def add(self, sequence: int, page_id: str, url: str) -> None:
        self._names.add(sequence, page_id, url)

    def erase(self, sequence: int) -> None:
        self._names.erase(sequence)  # one in a base stays there: it is not changed


def offered_bases(
    given: Mapping[str, str], folder: Path, space_id: str | None = None, report: Report = lambda *_: None
) -> BaseOffer:
    """Return what a log begins with that goes on from these bases, by name in their order. folder: for scratch files.

    space_id: of the pages that come; None: that of the first base. ConfigurationError if two of them are one state;
    raises as `open_base` and `download_base`.
    """
    scratch = _scratch(folder)
    bases: list[LogBase] = []
    policy = None
    after = 0
    for number, (name, place) in enumerate(given.items(), 1):
        base = _opened(name, place, folder / str(number), scratch, space_id, report)
        space_id = base.journal.header.space_id
        with closing(base.journal):
            other = next((one.name for one in bases if one.log == base.journal.header.identity), None)
            if other is not None:
                raise ConfigurationError(f"the bases {other} and {name} are one state: give it once")
            bases.append(LogBase(name, base.journal.header.identity, base.commit, after, base.records, base.entries))
            policy = policy or base.policy
        after += base.records
    if policy is None or space_id is None:
        raise ConfigurationError("no base is given: a log that goes on from bases needs one or more")
    rule, layout = MatchRule.from_dict(policy["rule"]), IndexLayout.from_dict(policy["layout"])
    return BaseOffer(tuple(bases), space_id, rule, layout, keep_of(policy))


def require_bases(policy: Policy, given: Mapping[str, str]) -> None:
    """Raise ConfigurationError if bases are given that the log was not begun with; it names what gives them."""
    others = ", ".join(name for name in given if name not in {base.name for base in policy.bases})
    if others:
        begun = f"with the bases {', '.join(base.name for base in policy.bases)}" if policy.bases else "without bases"
        raise ConfigurationError(
            f"the log was begun {begun}, and cannot be given {others} any later: leave {others} out of "
            f"{given_by(given)}, or begin another log with --prefix"
        )


def _mounted(
    base: LogBase, given: Mapping[str, str], download: Path, scratch: Path, space_id: str, report: Report
) -> Base:
    if base.name not in given:
        raise BaseUnusableError(f"base {base.name}: not given; give it with --base {base.name}=FOLDER")
    place = given[base.name]
    try:
        if is_address(place) and not download.exists():  # it is asked for again and again, and may be large
            _require_there(base, remote_manifest(place, scratch), place)
        return _opened(base.name, place, download, scratch, space_id, report)
    except BaseUnusableError:
        raise
    except (ConfigurationError, StateError, AddressUnreachableError) as error:
        raise BaseUnusableError(f"base {base.name}: {error} (given here: {place})") from error


def _require_there(base: LogBase, found: Manifest | None, place: str) -> None:
    if found is None or found.label.log != base.log or found.sequence < base.records:
        at = "nothing" if found is None else f"record {found.sequence} of state {found.label.log}"
        raise BaseUnusableError(
            f"base {base.name}: record {base.records} of state {base.log} expected, {at} found in {place}"
        )


def _opened(name: str, place: str, download: Path, scratch: Path, space_id: str | None, report: Report) -> Base:
    if is_address(place):
        download_base(place, download, report)
        return open_base(name, download, scratch, space_id)
    return open_base(name, Path(place), scratch, space_id)


def _as_it_was(expected: LogBase, base: Base, place: str, download: Path, scratch: Path) -> Base:
    """Return a base as the log says; BaseUnusableError for another one.

    One that was downloaded is then deleted if there is something else at its address by now.
    """
    identity, found = base.journal.header.identity, f"found in {base.folder}"
    same = base.as_at(expected.records, expected.commit) if identity == expected.log else None
    if same is not None:
        return same
    if base.folder == download.resolve() and (remote_manifest(place, scratch) != base.manifest):
        _delete(download)
    if identity != expected.log:
        raise BaseUnusableError(
            f"base {expected.name}: state {expected.log} expected, {identity} {found}: it is another one"
        )
    raise BaseUnusableError(
        f"base {expected.name}: record {expected.records} ({expected.commit or 'none'}) expected, {base.records} "
        f"({base.commit or 'none'}) {found}: since the log was begun with it, it has changed by more than retractions; "
        "give a copy of it as it was"
    )


def _scratch(folder: Path) -> Path:
    scratch = folder / _SCRATCH
    _delete(scratch)
    with translated_os_errors(folder):
        scratch.mkdir(parents=True)
    return scratch


def _delete(folder: Path) -> None:
    if folder.exists():
        with translated_os_errors(folder):
            shutil.rmtree(folder)
