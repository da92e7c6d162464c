"""Page names: in the file, or read from the log."""

from pathlib import Path

import pytest

from dedup_service.core.errors import StateError
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.page_names import PageNameStore


def nowhere(sequence: int) -> dict[int, tuple[str, str]]:
    """A log that has no page at `sequence`."""
    raise StateError(f"no page at {sequence}")


def from_log(sequence: int) -> dict[int, tuple[str, str]]:
    """A log that has every page, and returns ten at a time."""
    return {number: (f"id{number}", f"url{number}") for number in range(sequence, sequence + 10)}


def begun(path: Path, log: str, sequence: int) -> PageNameStore:
    """Open the names of `log` up to `sequence`, without a log to fall back to."""
    names = PageNameStore(path)
    names.begin(log, sequence, nowhere)
    return names


def test_names_after_the_snapshot_are_deleted(tmp_path: Path) -> None:
    """Opened at an earlier sequence, the file has no later names: the log may have changed from there."""
    names = begun(tmp_path / "names", "log", -1)
    for sequence in range(10):
        names.add(sequence, "id", f"url{sequence}")
    names.close()
    names = begun(tmp_path / "names", "log", 6)
    assert names.name(6) == ("id", "url6")
    with pytest.raises(StateError):
        names.name(7)
    names.close()


@pytest.mark.parametrize("log", ["another log", "log"])
def test_a_damaged_file_or_one_of_another_log_is_replaced(tmp_path: Path, log: str) -> None:
    """Names of another log are never returned, and a file that is not a database is replaced."""
    path = tmp_path / "names"
    names = begun(path, "log", -1)
    names.add(1, "id", "url")
    names.close()
    if log == "log":
        path.write_bytes(b"rubbish" * 1000)
    names = begun(path, log, 5)
    with pytest.raises(StateError):
        names.name(1)
    names.add(7, "new", "page")
    names.close()
    assert begun(path, log, 7).name(7) == ("new", "page")


def test_missing_names_are_read_from_the_log_and_stored(tmp_path: Path) -> None:
    """A missing name is read once from the log, with those after it; from then on they are in the file."""
    names = PageNameStore(tmp_path / "names")
    names.begin("log", -1, from_log)
    assert names.name(4) == ("id4", "url4")
    names.close()
    names = begun(tmp_path / "names", "log", 9)
    assert [names.name(number) for number in range(4, 10)] == [
        (f"id{number}", f"url{number}") for number in range(4, 10)
    ]


def test_an_erased_name_is_in_no_byte_of_the_folder_after_a_turn(tmp_path: Path) -> None:
    """A page that was taken down, added lately or long ago, without a snapshot; the names of others stay."""
    with LocalState.open(tmp_path) as local:
        local.names.begin("log", -1, nowhere)
        for sequence in range(200):
            local.names.add(sequence, f"id-{sequence:04}", f"https://a.example/story-{sequence:04}")
            if sequence == 150:
                local.names.flush()
        for sequence in (40, 160):
            local.names.erase(sequence)
        local.step()
        assert local.names.name(41) == ("id-0041", "https://a.example/story-0041")
        content = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert b"story-0041" in content
        assert not any(word in content for word in (b"story-0040", b"id-0040", b"story-0160", b"id-0160"))


def test_a_backlog_is_forgotten_with_the_names_that_come(tmp_path: Path) -> None:
    """A hundred thousand names leave, some thousand with each batch, and none that is needed."""
    names = begun(tmp_path / "names", "log", -1)
    for sequence in range(100_000):
        names.add(sequence, "id", f"url{sequence}")
    names.forget(99_000)
    for sequence in range(100_000, 160_000):
        names.add(sequence, "id", f"url{sequence}")
    names.flush()
    for sequence in (98_999, 99_000):
        with pytest.raises(StateError):
            names.name(sequence)
    assert names.name(99_001) == ("id", "url99001")
    names.close()
