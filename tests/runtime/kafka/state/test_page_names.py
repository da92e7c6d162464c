"""Names of kept pages: in the file, or read from the log."""

import logging
from pathlib import Path

import pytest

from dedup_service.core.errors import StateError
from dedup_service.runtime.kafka.state.page_names import PageNameStore


def nowhere(sequence: int) -> dict[int, tuple[str, str]]:
    """A log that has no page there."""
    raise StateError(f"no page at {sequence}")


def from_log(sequence: int) -> dict[int, tuple[str, str]]:
    """A log that has them all, and gives ten at a time."""
    return {at: (f"id{at}", f"url{at}") for at in range(sequence, sequence + 10)}


def begun(path: Path, log: str, sequence: int) -> PageNameStore:
    """Names of `log` up to `sequence`, with no log to fall back on."""
    names = PageNameStore(path)
    names.begin(log, sequence, nowhere)
    return names


def test_names_are_there_at_once_and_after_a_restart(tmp_path: Path) -> None:
    """A name can be asked for before it is written, and when the file is opened again; an id may be the URL."""
    names = begun(tmp_path / "names", "log", -1)
    names.add(3, "an id", "an url")
    names.add(5, "url", "url")
    assert (names.name(3), names.name(5)) == (("an id", "an url"), ("url", "url"))
    names.close()
    names = begun(tmp_path / "names", "log", 5)
    assert (names.name(3), names.name(5)) == (("an id", "an url"), ("url", "url"))
    names.close()


def test_what_came_after_the_snapshot_is_forgotten(tmp_path: Path) -> None:
    """Opened at an earlier sequence, the file knows nothing later: the log may have gone on otherwise."""
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
def test_a_file_of_another_log_or_damaged_is_made_anew(tmp_path: Path, log: str) -> None:
    """Names of another log are never told, and a file that is no database is replaced."""
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


def test_missing_names_come_from_the_log_and_stay(tmp_path: Path) -> None:
    """A name that the file lacks is read once from the log with those behind it; from then on they are in the file."""
    names = PageNameStore(tmp_path / "names")
    names.begin("log", -1, from_log)
    assert names.name(4) == ("id4", "url4")
    names.close()
    names = begun(tmp_path / "names", "log", 9)
    assert [names.name(at) for at in range(4, 10)] == [(f"id{at}", f"url{at}") for at in range(4, 10)]


def test_without_a_place_for_the_file_the_log_answers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where the file cannot be made, one warning says so, and every name still comes."""
    (tmp_path / "names").mkdir()
    names = PageNameStore(tmp_path / "names")
    with caplog.at_level(logging.WARNING):
        names.begin("log", -1, from_log)
        for sequence in range(20_000):
            names.add(sequence, f"id{sequence}", f"url{sequence}")
        assert [names.name(sequence) for sequence in (0, 19_999)] == [("id0", "url0"), ("id19999", "url19999")]
        names.close()
    assert len([record for record in caplog.records if "does not serve" in record.message]) == 1


def test_a_log_that_gets_its_identity_later_keeps_its_names(tmp_path: Path) -> None:
    """Begun on an empty log, the file belongs to the log once that has an identity."""
    names = begun(tmp_path / "names", "", -1)
    names.add(1, "id", "url")
    names.flush("log")
    names.close()
    assert begun(tmp_path / "names", "log", 1).name(1) == ("id", "url")
