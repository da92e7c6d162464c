"""The ways in which the pages of a log come to their verdicts; all give those of brute force, byte for byte.

A way takes the messages of a log and an empty folder, and returns what it said of each input record: the bytes of the
verdict, or None for one that is no page. `embedded` has numbers of its own for the pages, so those are left out.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dedup_service.core.decision.replica import Outcome, Replica
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import (
    CorrectionRecord,
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RetractionRecord,
    Source,
    TimeRecord,
)
from dedup_service.core.page import PreparedPage
from dedup_service.runtime.embedded.state import State, StateSettings
from dedup_service.runtime.kafka.messages.log_record import numbered
from dedup_service.runtime.kafka.messages.verdict import verdict_value
from dedup_service.runtime.kafka.state.deciding_state import decode_deciding_state, encode_deciding_state
from dedup_service.runtime.kafka.state.deciding_store import DecidingStore
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes
from tests.oracle.log import Oracle
from tests.page_names import NamesInMemory
from tests.runtime.embedded.prepared import kill
from tests.sharded_run import LoggedMessage, ShardedRun, decided_alone, parts_of

Messages = Sequence[LoggedMessage]
Said = dict[Source, bytes | None]

_MINUTE_S = 60


def expected(messages: Messages, takes: Callable[[LogRecord], bool] = lambda _record: True) -> Said:
    """Return what brute force says of each input record of a log, of which only some records count."""
    oracle = Oracle()
    for sequence, record in numbered(messages):
        if takes(record):
            oracle.read(sequence, record)
    return {source: answer.value for source, answer in oracle.answers.items()}


def said(outcomes: Iterable[Outcome | None]) -> Said:
    """Return what outcomes say of input records."""
    found = [outcome for outcome in outcomes if outcome is not None]
    verdicts = {one.source: None if one.verdict is None else verdict_value(one.verdict, one.source) for one in found}
    assert len(verdicts) == len(found), "an input record has two outcomes"
    return verdicts


def one_by_one(messages: Messages, folder: Path | None = None) -> Said:
    """Return what a replica says that is given each record by itself."""
    replica = Replica(NamesInMemory())
    return said(replica.apply(*row) for row in numbered(messages))


def as_records(messages: Messages, folder: Path | None = None) -> Said:
    """Return what a replica says that is given the records of the whole log at once."""
    return said(Replica(NamesInMemory()).apply_many(numbered(messages)))


def in_columns(messages: Messages, folder: Path | None = None) -> Said:
    """Return what a replica says that is given messages as a service reads them."""
    return said(decided_alone(messages))


def restored(messages: Messages, folder: Path | None = None) -> Said:
    """Return what replicas say of which each goes on, after three messages, from entries and state of the last one."""
    names = NamesInMemory()
    replica, outcomes = Replica(names), list[Outcome]()
    for number, message in enumerate(messages):
        outcomes += replica.apply_parts(parts_of(message))
        if number % 3 == 2:
            state = decode_deciding_state(encode_deciding_state(replica.state(), PendingOutcomes())).replica
            again = Replica(names, rows=replica.held(), state=state)
            assert again.held().entries() == replica.held().entries()
            assert again.state() == state
            replica = again
    return said(outcomes)


def stored(messages: Messages, folder: Path) -> Said:
    """Return what services say of which each begins at the last snapshot in a folder, some messages back."""
    names, outcomes = NamesInMemory(), dict[int, list[Outcome]]()
    done = 0
    for end in [*range(17, len(messages), 17), len(messages)]:
        with closing(DecidingStore(folder / "pages")) as store:
            snapshot = store.stored()
            store.begin(snapshot)
            state = None if snapshot is None else snapshot.state.replica
            replica = Replica(names, state=state, entries=store.entries)
            for number in range(done, end):
                outcomes[number] = replica.apply_parts(parts_of(messages[number]))
                if number == end - 5:
                    store.take_snapshot(replica, PendingOutcomes(), "")
                    done = number + 1
                store.step()
    return said(outcome for number in sorted(outcomes) for outcome in outcomes[number])


def sharded(of: int) -> Callable[[Messages, Path], Said]:
    """Return the way through shards and a resolver that is made again from its state, all by the wire format."""

    def way(messages: Messages, folder: Path) -> Said:
        restarts = frozenset(range(9, len(messages), 40))
        return said(ShardedRun(of, restarts=restarts).decide(messages))

    return way


def embedded(messages: Messages, folder: Path) -> Said:
    """Return what an embedded state says; it is opened again for each policy, every second time after a kill."""
    with closing(_Embedded(folder)) as state:
        for _, record in numbered(messages):
            state.read(record)
        return state.said


def embedded_takes(record: LogRecord) -> bool:
    """Return whether an embedded state has such a record: it has one space, and writes every page out."""
    if isinstance(record, PageRecord):
        return record.space_id != "another-space"
    return isinstance(record, CorrectionRecord | PolicyRecord | RetractionRecord | TimeRecord)


def without_sequence(answers: Said) -> dict[Source, dict[str, Any]]:
    """Return verdicts without their sequences."""
    return {
        source: {name: field for name, field in json.loads(value).items() if name != "sequence"}
        for source, value in answers.items()
        if value is not None
    }


class _Embedded:
    """An embedded state that is given the records of a log."""

    def __init__(self, folder: Path) -> None:
        self.said: Said = {}
        self._folder = folder
        self._state: State | None = None
        self._policy: Policy | None = None
        self._pages: list[tuple[Source, PreparedPage]] = []
        self._urls: dict[Source, str] = {}
        self._taken_down: set[str] = set()
        self._minute, self._opened = 0, 0

    def read(self, record: LogRecord) -> None:
        """Apply the next record."""
        if not embedded_takes(record):
            return
        if isinstance(record, PageRecord):
            url = self._urls.setdefault(record.source, record.prepared.page.url)
            if record.source not in self.said or url not in self._taken_down:  # else a state decides it again
                self._pages.append((record.source, record.prepared))
            return
        self._decide()
        match record:
            case TimeRecord(minute):
                self._minute = max(self._minute, minute)
            case PolicyRecord(policy):
                self._open(policy)
            case CorrectionRecord() if self._state is not None:
                self._state.correct(record)
            case RetractionRecord() if self._state is not None:
                self._taken_down.add(record.url)
                with suppress(StateError):  # it is not kept
                    self._state.retract(record.url, erase=False)

    def close(self) -> None:
        """Decide the pages that wait, and close the state."""
        self._decide()
        if self._state is not None:
            self._state.close()

    def _open(self, policy: Policy) -> None:
        if self._state is not None:
            (kill if self._opened % 2 else State.close)(self._state)
        self._opened += 1
        settings = StateSettings(policy.layout, snapshot_every=150)
        space = {"scheme": "test"}
        self._state = State(self._folder, policy.space_id, space, policy.rule, settings, (), policy.keep)

    def _decide(self) -> None:
        pages, self._pages = self._pages, []
        if self._state is None or not pages:
            return
        with patch("time.time", lambda: self._minute * _MINUTE_S):
            verdicts = self._state.decide([(page, str(source).encode()) for source, page in pages])
        for (source, _), verdict in zip(pages, verdicts, strict=True):
            value = verdict_value(replace(verdict, sequence=0), source)
            assert self.said.setdefault(source, value) == value, "a repeated delivery has another verdict"


SHARDS = {f"{of} shards": of for of in (1, 4)}

WAYS: dict[str, Callable[[Messages, Path], Said]] = {
    "one by one": one_by_one,
    "as records": as_records,
    "in columns": in_columns,
    "restored": restored,
    "stored": stored,
    **{name: sharded(of) for name, of in SHARDS.items()},
    "embedded": embedded,
}
"""Name → way. `embedded` is compared without sequences, with the oracle of the records that it takes."""
