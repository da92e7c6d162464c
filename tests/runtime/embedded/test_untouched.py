"""Reading a state folder leaves it as it was, whoever has it open, and whatever can be written."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from dedup_service.core.errors import StateError
from dedup_service.runtime.embedded.database import SHARED_MEMORY, WRITE_AHEAD, StateDamagedError, StateInUseError
from dedup_service.runtime.embedded.state import JOURNAL_FILE, State
from dedup_service.runtime.embedded.state_info import open_read_only, state_info
from tests.hangs import HANG_S

from .prepared import SPACE, SPACE_ID, prepared

AHEAD, SHARED = JOURNAL_FILE + WRITE_AHEAD, JOURNAL_FILE + SHARED_MEMORY
ROOT = Path(__file__).parents[3]


def opened(folder: Path) -> State:
    """A state that has decided three pages since it was opened, which are in its write-ahead file alone."""
    state = State(folder, SPACE_ID, SPACE)
    last = state.journal.database.first("SELECT ifnull(max(sequence), 0) FROM log")
    assert last is not None
    state.decide([(prepared(f"u{last[0] + number}", last[0] + number), None) for number in range(3)])
    if state._commits is not None:
        state._commits.wait()  # its thread writes files
    return state


def contents(folder: Path) -> dict[str, bytes]:
    """Every file with what is in it, but not what processes share: a reader has its place there."""
    return {
        str(path.relative_to(folder)): b"" if path.name == SHARED else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def of_journal(folder: Path) -> dict[str, bytes]:
    """The contents of the journal's files: those in `pages` change by themselves while their owner is open."""
    return {name: data for name, data in contents(folder).items() if name.startswith(JOURNAL_FILE)}


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """A folder as a killed process leaves it: three pages are closed, three more in the write-ahead file alone."""
    folder = tmp_path / "running"
    folder.mkdir()
    opened(folder).close()
    with closing(opened(folder)):
        return Path(shutil.copytree(folder, tmp_path / "crashed"))


def test_of_a_closed_state_nothing_is_left_behind(tmp_path: Path) -> None:
    """Neither by one reader nor by two at once, nor by one that fails."""
    opened(tmp_path).close()
    before = contents(tmp_path)
    assert AHEAD not in before
    assert state_info(tmp_path).sequence == 3
    assert contents(tmp_path) == before
    with closing(open_read_only(tmp_path)) as one:
        with closing(open_read_only(tmp_path)) as two:
            assert one.rows("SELECT max(sequence) FROM log") == two.rows("SELECT max(sequence) FROM log")
        with pytest.raises(StateError, match="readonly"):
            one.rows("DELETE FROM log")
        assert one.rows("SELECT max(sequence) FROM log") == [(3,)]
    assert contents(tmp_path) == before
    (tmp_path / JOURNAL_FILE).write_bytes(b"not a database" * 100)
    before = contents(tmp_path)
    with pytest.raises(StateDamagedError):
        state_info(tmp_path)
    assert contents(tmp_path) == before


def test_of_a_state_that_is_open_the_write_ahead_file_is_read(tmp_path: Path) -> None:
    """It has all pages; its owner goes on, and has the file to itself again."""
    with closing(opened(tmp_path)) as state:
        before = of_journal(tmp_path)
        assert before[AHEAD]
        assert state_info(tmp_path).sequence == 3
        assert of_journal(tmp_path) == before
        state.decide([(prepared("more", 9), None)])
        assert state_info(tmp_path).sequence == 4
    assert AHEAD not in contents(tmp_path)


def test_a_writer_may_come_and_go_while_a_state_is_read(tmp_path: Path) -> None:
    """The reader sees the state as it was when it began; nothing that was written is lost, and no file is left."""
    opened(tmp_path).close()
    reader = open_read_only(tmp_path)
    with reader.reading() as connection:
        assert connection.execute("SELECT max(sequence) FROM log").fetchone() == (3,)
        opened(tmp_path).close()
        assert connection.execute("SELECT max(sequence) FROM log").fetchone() == (3,)
    assert reader.rows("SELECT max(sequence) FROM log") == [(6,)]
    reader.close()
    assert state_info(tmp_path).sequence == 6
    assert {AHEAD, SHARED}.isdisjoint(contents(tmp_path))


@pytest.mark.parametrize("missing", [None, SHARED, AHEAD])
def test_what_a_crash_left_is_read_and_not_touched(crashed: Path, missing: str | None) -> None:
    """Also in a copy without one of the files beside the journal; the next opening has the pages that were read."""
    if missing is not None:
        (crashed / missing).unlink()
    pages = 3 if missing == AHEAD else 6
    before = contents(crashed)
    for _ in range(2):
        assert state_info(crashed).sequence == pages
        assert contents(crashed) == before
    with closing(State(crashed, SPACE_ID, SPACE)) as state:
        assert state.journal.database.rows("SELECT max(sequence) FROM log") == [(pages,)]


@pytest.mark.parametrize("missing", [None, "both"])
def test_a_state_on_a_read_only_file_system_is_read(crashed: Path, missing: str | None) -> None:
    """A closed one, one that is or was open, and a copy of one."""
    for name in (AHEAD, SHARED) if missing else ():
        (crashed / name).unlink()
    mounted = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && ! touch "$1/x" 2>/dev/null'
    command = f'{mounted} && exec "$2" -m dedup_service.interfaces.cli state info --json "$1"'
    isolated = ["unshare", "--map-root-user", "--mount", "sh", "-c", command, "sh", crashed, sys.executable]
    if shutil.which("unshare") is None or subprocess.run([*isolated[:3], "true"], check=False).returncode:
        pytest.skip("this machine gives no mounts to a process")
    done = subprocess.run(isolated, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sequence"] == (3 if missing else 6)


def test_a_state_that_cannot_be_locked_and_is_written_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a mount that others write to; another attempt reads all of it."""
    opened(tmp_path).close()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with closing(open_read_only(tmp_path)) as reader, ExitStack() as stack:
        stack.enter_context(reader.reading())
        assert AHEAD not in contents(tmp_path)
        opened(tmp_path).close()
        with pytest.raises(StateInUseError, match="was written while it was read: try again"):
            stack.close()
    assert state_info(tmp_path).sequence == 6
