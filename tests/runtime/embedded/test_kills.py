"""A state that is killed at any write to the disk goes on with the verdicts of one that never stopped."""

import os
import pickle
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.errors import StateError
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.embedded.administration import compact_state
from dedup_service.runtime.embedded.database import VACUUM_SHARE
from dedup_service.runtime.embedded.journal import read_counters
from dedup_service.runtime.embedded.state import State, StateSettings
from dedup_service.runtime.embedded.state_info import state_info

from .prepared import SPACE, SPACE_ID, prepared, state_of

WRITES = ("fsync", "fdatasync", "pwrite", "replace", "unlink", "ftruncate", "truncate")
"""Functions of `os` that a state changes the disk with; SQLite has its own."""

SETTINGS = StateSettings(IndexLayout(window=8), snapshot_every=10)
KEEP = Keep(max_pages=40)
BATCH, BATCHES, TAKE_DOWNS = 4, 40, 9
MOST_WRITES = 150
"""Writes after which a process is killed, at most: those of two or three commits."""


def stream(seed: int) -> list[list[tuple[PreparedPage, bytes]]]:
    """Batches of pages of few stories at few addresses."""
    chosen = random.Random(seed)
    pages = [
        prepared(f"https://a.example/{chosen.randrange(60)}", chosen.randrange(50), version=chosen.randrange(2))
        for _ in range(BATCH * BATCHES)
    ]
    numbered = [(page, b"%016d" % number) for number, page in enumerate(pages)]
    return [numbered[start : start + BATCH] for start in range(0, len(numbered), BATCH)]


def opened(folder: Path | None) -> State:
    """An open state."""
    return State(folder, SPACE_ID, SPACE, None, SETTINGS, keep=KEEP)


def take_down(state: State, number: int, batch: list[tuple[PreparedPage, bytes]]) -> None:
    """Erase a page now and then; a repetition finds that it is done."""
    if number % TAKE_DOWNS == TAKE_DOWNS - 1:
        with suppress(StateError):
            state.retract(batch[0][0].page.canonical_url)


def dies_at(write: int, work: Callable[[], None]) -> bool:
    """Whether a process that does `work` was killed before its n-th write."""
    child = os.fork()
    if child == 0:
        left = [write]

        def counted(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*values: Any, **named: Any) -> Any:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*values, **named)

            return call

        try:
            for name in WRITES:
                setattr(os, name, counted(getattr(os, name)))
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def go_on(state: State, batches: list[list[tuple[PreparedPage, bytes]]], given: Path | None = None) -> None:
    """Decide what is left of the batches. given: file to which every verdict is appended."""
    counters = read_counters(state.journal.database.connection)
    first = sum(counters.get(kind.value, 0) for kind in VerdictKind) // BATCH
    if first:
        take_down(state, first - 1, batches[first - 1])  # the last one may have been interrupted
    for number in range(first, BATCHES):
        verdicts = state.decide(batches[number])
        if given is not None:
            with given.open("ab") as file:
                file.write(pickle.dumps((number, [(verdict.sequence, verdict.kind) for verdict in verdicts])))
        take_down(state, number, batches[number])


@pytest.mark.parametrize("stride", [7, 12])
def test_a_state_killed_at_any_write_gives_the_verdicts_of_one_that_was_not(tmp_path: Path, stride: int) -> None:
    """With commits, images, expiry and take-downs. What it gave out, and what it holds, is the same."""
    batches, given, folder = stream(stride), tmp_path / "given", tmp_path / "s"
    folder.mkdir()
    steady = opened(None)
    go_on(steady, batches, expected := tmp_path / "expected")

    def work() -> None:
        state = opened(folder)
        go_on(state, batches, given)
        state.close()

    kills = 0
    while dies_at(kills * stride % MOST_WRITES + 1, work):
        kills += 1
    assert kills > 5
    verdicts = dict(read(expected))
    assert [found for number, found in read(given) if found != verdicts[number]] == []
    state = opened(folder)
    assert [(entry.sequence, entry.evidence) for entry in state.held().rows().entries()] == [
        (entry.sequence, entry.evidence) for entry in steady.held().rows().entries()
    ]
    assert without_times(state_of(state._decider)) == without_times(state_of(steady._decider))
    state.close()


def test_a_compaction_that_is_killed_at_any_write_changes_no_verdict(tmp_path: Path) -> None:
    """The state opens as before, and goes on as one that was not compacted; at the end no dead row is left."""
    batches, folder, steady = stream(5), tmp_path / "s", tmp_path / "steady"
    folder.mkdir()
    state = opened(folder)
    for number, batch in enumerate(batches[:-4]):
        state.decide(batch)
        take_down(state, number, batch)
    state.close()
    shutil.copytree(folder, steady)

    kills = 0
    while dies_at(kills * 3 + 1, lambda: compact_state(folder, lambda *_: None)):
        kills += 1
        opened_again = state_info(folder)
        assert opened_again.entries == state_info(steady).entries
    assert kills > 5
    info = state_info(folder)
    assert info.rows == info.live_rows
    assert VACUUM_SHARE * info.journal_free_bytes < info.journal_bytes
    assert info.rows < state_info(steady).rows
    compacted, other = opened(folder), opened(steady)
    for batch in batches[-4:]:
        assert compacted.decide(batch) == other.decide(batch)
    assert [(entry.sequence, entry.evidence) for entry in compacted.held().rows().entries()] == [
        (entry.sequence, entry.evidence) for entry in other.held().rows().entries()
    ]
    compacted.close()
    other.close()


def without_times(state: DeciderState) -> DeciderState:
    """Return a state without its times: a minute may pass between two runs."""
    return replace(state, expiry=replace(state.expiry, times=b""))


def read(path: Path) -> Iterator[tuple[int, list[tuple[int, VerdictKind]]]]:
    """Yield the batches in a file: number, and its verdicts."""
    with path.open("rb") as file, suppress(EOFError):
        while True:
            yield pickle.load(file)
