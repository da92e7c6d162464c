"""A state that is stopped anywhere, any number of times, is the state of a crawl that was never stopped.

`crawl` makes the crawl from a seed: batches of pages, and between them take-downs, retractions, corrections, changes of
policy and compactions. A state that is never killed does it first and says what each verdict is, and what is kept after
each step. Then a child process does the same in another folder and is killed, again and again, until it comes to the
end: before or after its n-th call that changes the kept pages, before its n-th SQL statement, or after a random share
of a second of processor time. A power cut is a kill after which the end of what was not durable is torn off, with
garbage behind it. Each child goes on where the log ends, and checks verdicts and entries itself; every verdict that was
given out before stays.
"""

import json
import os
import random
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dedup_service import _native
from dedup_service._native import PageStore, PendingCommit, read_manifest
from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.guards import NO_GUARDS, Guards
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.embedded.evidence import MOVED
from dedup_service.runtime.embedded.journal import read_counters
from dedup_service.runtime.embedded.state import JOURNAL_FILE, PAGES_FOLDER, State, StateSettings
from dedup_service.runtime.embedded.state_info import open_read_only, state_info
from dedup_service.runtime.store.page_files import GROWING

from .prepared import SPACE, SPACE_ID, lose_pages, prepared, state_of

WRITES = {
    _native.Decider: ("decide_batch", "apply", "remove", "remove_expired"),
    PageStore: ("append", "remove", "erase", "begin_commit", "compact"),
    PendingCommit: ("finish",),
}
"""Calls that change the files of the kept pages; the journal is SQLite's."""

GUARDED = replace(rule_for(), guards=Guards(max_pages=3, max_hosts=2, max_titles=1))
RULES = (GUARDED, replace(GUARDED, guards=NO_GUARDS), replace(GUARDED, guards=Guards(max_pages=4, max_titles=2)))
KEEPS = (Keep(max_pages=40), Keep(max_pages=60, max_age_minutes=2000), KEEP_ALL)
LAYOUT = IndexLayout(slots=2, window=6)
"""A window that ends inside of a batch."""

STEADY = StateSettings(LAYOUT)
OFTEN = StateSettings(LAYOUT, snapshot_every=10)
FORGETFUL = StateSettings(LAYOUT, snapshot_every=10, journal_days=1)
HOURS_A_STEP = 3
STEPS, BATCH = 44, 4


@dataclass(frozen=True, slots=True)
class Step:
    """A batch and the change after it. decided, ended: where the log is after each; live: entries at the end."""

    number: int
    pages: list[tuple[PreparedPage, bytes]]
    change: str
    argument: Any
    verdicts: list[Verdict]
    decided: int
    ended: int
    live: list[int]


@dataclass(slots=True)
class Run:
    """An open state. It is told the time."""

    folder: Path
    settings: StateSettings
    erase: bool = True
    state: State = field(init=False)

    def open(self, **policy: Any) -> None:
        """Open the state."""
        rule, keep = policy.get("rule"), policy.get("keep")
        self.state = State(self.folder, SPACE_ID, SPACE, rule, self.settings, keep=keep)

    def change(self, kind: str, argument: Any) -> None:
        """Do what comes after a batch."""
        if kind == "take down":
            self.state.retract(argument, erase=self.erase)
        elif kind == "retract":
            self.state.retract(argument, erase=False)
        elif kind == "correct":
            self.state.correct(argument)
        elif kind == "compact":
            self.state.compact(lambda *_: None)
        elif kind == "policy":
            self.state.close()
            self.open(**argument)

    def live(self) -> list[int]:
        """Return the sequences of the entries."""
        return [entry.sequence for entry in self.state.held().entries()]

    def contents(self) -> tuple[DeciderState, Any, list[tuple[int, bytes]]]:
        """Return all that later verdicts depend on."""
        entries = [(entry.sequence, entry.evidence) for entry in self.state.held().entries()]
        return state_of(self.state._decider), self.state.host_text().state(), entries


def at_step(patch: pytest.MonkeyPatch, number: int) -> None:
    """Let the clock be what it is at a step."""
    patch.setattr(time, "time", lambda: 1_800_000_000.0 + 3600 * HOURS_A_STEP * number)


def secret(number: int) -> PreparedPage:
    """Return the page that is taken down at a step, whose text no other page has."""
    return prepared(f"https://site.example/secret-{number}-page", 10_000 + number)


def batch_of(rng: random.Random, number: int) -> list[tuple[PreparedPage, bytes]]:
    """Return pages of few stories at few addresses, some too short to judge."""
    pages = [
        prepared(
            f"https://site{rng.randrange(4)}.example/{rng.randrange(20)}",
            rng.randrange(50),
            version=rng.choice([0, 0, 0, 1, 3]),
            reason="too short" if rng.random() < 0.1 else None,
        )
        for _ in range(BATCH)
    ]
    return [(page, b"%08d%08d" % (number, at)) for at, page in enumerate(pages)]


def crawl(folder: Path, seed: int) -> tuple[list[Step], tuple[Any, ...]]:
    """Return the steps of a crawl, and what the state has at its end. folder: of the state that is never killed."""
    rng, steps = random.Random(seed), []
    run = Run(folder, STEADY, erase=False)
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        at_step(patch, 0)
        run.open(rule=GUARDED)
        for number in range(STEPS):
            at_step(patch, number)
            pages = batch_of(rng, number)
            if steps:
                pages += steps[-1].pages[:1]  # a delivery that is repeated, and below a page that is unchanged
                pages.append((rng.choice(steps).pages[0][0], b"again  %09d" % number))
            kind = rng.choice(["take down", "take down", "retract", "correct", "policy", "compact", ""])
            argument: Any = None
            if kind == "take down":
                pages.append((secret(number), b"secret %09d" % number))
                argument = secret(number).page.url
            verdicts = run.state.decide(pages)
            decided = run.state.journal.sequence
            if kind == "retract":
                argument = rng.choice(run.live())
            elif kind == "correct":
                one, other = (rng.choice(pages)[0].page.canonical_url for _ in range(2))
                argument = CorrectionRecord(one, other, rng.random() < 0.5, "said")
            elif kind == "policy":
                argument = {"rule": rng.choice(RULES), "keep": rng.choice(KEEPS)}
            run.change(kind, argument)
            ended = run.state.journal.sequence
            steps.append(Step(number, pages, kind, argument, verdicts, decided, ended, run.live()))
        found = run.contents()
        run.state.close()
    return steps, found


def go_on(run: Run, steps: list[Step], given: Path, opened: Callable[[State], None]) -> None:
    """Do what is left of the crawl, and append to `given` where the log and its file end after each batch."""
    wal = run.folder / f"{JOURNAL_FILE}-wal"
    with pytest.MonkeyPatch.context() as patch:
        at_step(patch, 0)
        durable = last_given(given)[0]
        done = state_info(run.folder).sequence if durable else 0
        at_step(patch, next((step.number for step in steps if step.ended > done), STEPS))
        run.open(**({} if done else {"rule": GUARDED}))
        opened(run.state)
        sequence = run.state.journal.sequence
        assert sequence >= durable
        assert sequence in {0, *(step.decided for step in steps), *(step.ended for step in steps)}
        for step in steps:
            if step.ended <= sequence:
                assert step.ended < sequence or run.live() == step.live
                if step.change == "take down":
                    assert_gone(run.folder, step.number)
                continue
            at_step(patch, step.number)
            if step.decided > sequence:
                assert run.state.decide(step.pages) == step.verdicts
                with given.open("a") as file:
                    file.write(json.dumps([step.decided, wal.stat().st_size]) + "\n")
            run.change(step.change, step.argument)
            assert run.live() == step.live
        run.state.compact(lambda *_: None)
        run.state.close()


def last_given(given: Path) -> tuple[int, int]:
    """Return where the log and its write-ahead file ended when the last verdicts were given out."""
    lines = given.read_text().splitlines() if given.exists() else []
    return tuple(json.loads(lines[-1])) if lines else (0, 0)  # type: ignore[return-value]


def assert_gone(folder: Path, number: int) -> None:
    """No file has address or evidence of a page that was taken down; what SQLite has to write back is left out."""
    page = secret(number)
    middle = page.evidence[len(page.evidence) // 2 :][:24]
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.endswith("-wal"):
            content = path.read_bytes()
            assert b"secret-%d-" % number not in content, path
            assert middle not in content, path


def assert_compact(folder: Path, steps: list[Step], entries: list[tuple[int, bytes]]) -> None:
    """The kept pages have the evidence of entries alone."""
    content = (folder / PAGES_FOLDER / "evidence").read_bytes()
    gone = {page.evidence for step in steps for page, _ in step.pages} - {evidence for _, evidence in entries}
    assert len(gone) > 5
    assert not [evidence for evidence in gone if evidence in content]


def kills_at_writes(stride: int, most: int = 150) -> Iterator[Callable[[], Callable[[State], None]]]:
    """Yield what arms a child: it dies before or after a call of the store that writes."""
    for kill in count():
        yield lambda left=kill * stride % most + 1: arm_writes([left])


def arm_writes(left: list[int]) -> Callable[[State], None]:
    """Die before or after so many calls of the store that write; kills inside of them are tests of the crate."""

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return function(*values, **named)
            finally:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        return call

    for kind, names in WRITES.items():
        for name in names:
            setattr(kind, name, counted(getattr(kind, name)))
    return lambda _state: None


def kills_at_statements(stride: int, most: int = 300) -> Iterator[Callable[[], Callable[[State], None]]]:
    """Yield what arms a child: it dies before the n-th SQL statement after it has opened the state."""
    for kill in count():
        yield lambda left=kill * stride % most + 1: lambda state: arm_statements(state, [left])


def arm_statements(state: State, left: list[int]) -> None:
    """Die before so many statements on the journal."""

    def counted(_sql: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    state.journal.database.connection.set_trace_callback(counted)


def kills_at_instants(seed: int) -> Iterator[Callable[[], Callable[[State], None]]]:
    """Yield what arms a child: the system ends it after some processor time, however busy the machine is."""
    rng = random.Random(seed)
    for kill in count():
        after_s = rng.random() * (0.05 + 0.01 * kill)
        yield partial(arm_timer, after_s)


def arm_timer(after_s: float) -> Callable[[State], None]:
    """Die after so much processor time."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, max(0.001, after_s))
    return lambda _state: None


def dies(arm: Callable[[], Callable[[State], None]], work: Callable[[Callable[[State], None]], None]) -> bool:
    """Whether a process that does `work` was killed; an error in it is one of the test."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work(arm())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "see standard error"
    return os.WIFSIGNALED(status)


def cut_power(folder: Path, given: Path, rng: random.Random) -> None:
    """Tear off a part of what the disk need not have: of the last transaction, and behind the last commit."""
    wal, pages = folder / f"{JOURNAL_FILE}-wal", folder / PAGES_FOLDER
    manifest = read_manifest(pages)
    if manifest is None:
        return
    durable, wal_bytes = last_given(given)
    if wal.exists() and manifest.sequence <= durable:  # a commit comes after its records are durable
        size = wal.stat().st_size
        os.truncate(wal, min(size, wal_bytes) + int(max(0, size - wal_bytes) * rng.random()))
    (folder / f"{JOURNAL_FILE}-shm").unlink(missing_ok=True)  # shared memory does not survive
    rows = manifest.next_row - manifest.first_row
    for name, length in zip(GROWING, (manifest.rows_bytes, 16 * rows, manifest.evidence_bytes), strict=True):
        size = (pages / name).stat().st_size
        if size > length:
            os.truncate(pages / name, length + int((size - length) * rng.random()))
        with (pages / name).open("ab") as file:
            file.write(rng.randbytes(rng.randrange(200)))
    (pages / "manifest.tmp").write_bytes(b"but no more of it")


def can_lose_pages(folder: Path) -> bool:
    """Whether the journal has the evidence of all entries, so that the kept pages can be built again."""
    database = open_read_only(folder)
    with database.reading() as connection:
        counters = read_counters(connection)
    database.close()
    return not counters.get(MOVED) and not counters.get("evidence_erased")


@pytest.mark.parametrize(
    ("seed", "kills", "settings", "power"),
    [
        (1, kills_at_writes(7), OFTEN, False),
        (2, kills_at_writes(12), FORGETFUL, True),
        (3, kills_at_statements(11), FORGETFUL, False),
        (4, kills_at_instants(4), OFTEN, True),
    ],
    ids=["writes", "writes and power", "statements", "instants and power"],
)
def test_a_state_killed_anywhere_is_the_state_of_one_that_was_not(
    tmp_path: Path,
    seed: int,
    kills: Iterator[Callable[[], Callable[[State], None]]],
    settings: StateSettings,
    power: bool,
) -> None:
    """Verdicts, entries, evidence, guards and the hosts' own text; nothing of a page that was taken down is left."""
    steps, expected = crawl(tmp_path / "steady", seed)
    assert {verdict.kind for step in steps for verdict in step.verdicts} == set(VerdictKind)
    run, given, rng = Run(tmp_path / "s", settings), tmp_path / "given", random.Random(seed)
    run.folder.mkdir()
    died = 0
    while dies(next(kills), lambda opened: go_on(run, steps, given, opened)):
        died += 1
        if power:
            cut_power(run.folder, given, rng)
            # a child that died early has not built again what the one before lost
            there = (run.folder / PAGES_FOLDER).exists()
            if there and last_given(given)[0] and can_lose_pages(run.folder):
                lose_pages(run.folder)
    assert died > 5
    with pytest.MonkeyPatch.context() as patch:
        at_step(patch, STEPS)
        run.open()
        assert run.contents() == expected
        rows = run.state.journal.database.rows("SELECT count(*) FROM log")[0][0]
        assert (rows < steps[-1].ended) == (settings is FORGETFUL)
        run.state.close()
    assert_compact(run.folder, steps, expected[-1])
    for path in run.folder.rglob("*"):
        assert not path.is_file() or b"secret-" not in path.read_bytes(), path


def test_a_compaction_that_is_killed_at_any_write_changes_nothing(tmp_path: Path) -> None:
    """The state opens as before each time, and in the end nothing of a dead row is left."""
    steps, expected = crawl(tmp_path / "s", 5)
    run = Run(tmp_path / "s", OFTEN)

    def compact(opened: Callable[[State], None]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            at_step(patch, STEPS)
            run.open()
            opened(run.state)
            assert run.contents() == expected
            run.state.compact(lambda *_: None)
            run.state.close()

    died = 0
    kills = kills_at_writes(1)
    while dies(next(kills), compact):
        died += 1
    assert died > 5
    assert_compact(run.folder, steps, expected[-1])
