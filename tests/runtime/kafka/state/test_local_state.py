"""A service's folder: one name for good, one process, one kind."""

from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.embedded.database import ForeignStateError, StateFullError, StateInUseError
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.kafka.state.local_state import LocalState


def name_in(folder: Path, given: str | None = None) -> str:
    """The name of a process that opens `folder`."""
    with LocalState.open(folder, given) as local:
        return local.instance


def test_a_name_is_made_once(tmp_path: Path) -> None:
    """A folder has its own name, the same at every opening; two folders have two."""
    assert name_in(tmp_path / "a") == name_in(tmp_path / "a")
    assert name_in(tmp_path / "a") != name_in(tmp_path / "b")


def test_a_given_name_is_used_and_not_kept(tmp_path: Path) -> None:
    """--instance names this run; the folder's own name comes back without it."""
    own = name_in(tmp_path)
    assert name_in(tmp_path, "worker-1") == "worker-1"
    assert name_in(tmp_path) == own


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 201])
def test_a_name_that_kafka_does_not_take_is_refused(tmp_path: Path, name: str) -> None:
    """The broker would refuse it later, in words of its own."""
    with pytest.raises(ConfigurationError, match="is no name for Kafka"):
        LocalState.open(tmp_path, name)


def test_a_torn_name_is_made_anew(tmp_path: Path) -> None:
    """An empty file, as a full disk may leave it, is no name."""
    (tmp_path / "instance").write_text("")
    assert name_in(tmp_path) == name_in(tmp_path) != ""


def test_a_name_that_cannot_be_kept_stops_the_start(tmp_path: Path) -> None:
    """Without a lasting name a restarted process could not fence its earlier self."""
    (tmp_path / "instance.tmp").mkdir()
    with pytest.raises(StateFullError, match="instance"):
        LocalState.open(tmp_path)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """A folder in use is refused, and free again once closed."""
    with LocalState.open(tmp_path), pytest.raises(StateInUseError):
        LocalState.open(tmp_path)
    LocalState.open(tmp_path).close()


def test_folders_of_the_two_kinds_are_not_mixed(tmp_path: Path) -> None:
    """The embedded filter's folder is refused by the service, the service's by the filter, naming both."""
    NearDuplicateFilter.open(tmp_path / "filter").close()
    LocalState.open(tmp_path / "service").close()
    with pytest.raises(ForeignStateError, match=r"journal\.sqlite is in it"):
        LocalState.open(tmp_path / "filter")
    with pytest.raises(ForeignStateError, match="instance is in it"):
        NearDuplicateFilter.open(tmp_path / "service")
    NearDuplicateFilter.open(tmp_path / "filter").close()
