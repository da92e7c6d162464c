"""The folder of a service: one permanent name, one process, one kind."""

from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.embedded.database import ForeignStateError, StateFullError, StateInUseError
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.kafka.state.local_state import LocalState


def name_in(folder: Path, instance: str | None = None) -> str:
    """Return the name of a process that opens `folder`."""
    with LocalState.open(folder, instance) as local:
        return local.instance


def test_a_name_is_created_once(tmp_path: Path) -> None:
    """A folder has one name whenever it is opened; two folders have two."""
    assert name_in(tmp_path / "a") == name_in(tmp_path / "a")
    assert name_in(tmp_path / "a") != name_in(tmp_path / "b")


def test_a_given_name_is_used_and_not_stored(tmp_path: Path) -> None:
    """--instance names this run; without it the folder's own name is used again."""
    own = name_in(tmp_path)
    assert name_in(tmp_path, "worker-1") == "worker-1"
    assert name_in(tmp_path) == own


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 201])
def test_a_name_that_kafka_does_not_accept_is_refused(tmp_path: Path, name: str) -> None:
    """The broker would refuse it later, with a less helpful message."""
    with pytest.raises(ConfigurationError, match="Kafka does not accept the instance name"):
        LocalState.open(tmp_path, name)


def test_a_name_that_cannot_be_stored_stops_the_start(tmp_path: Path) -> None:
    """Without a permanent name a restarted process could not fence its predecessor."""
    (tmp_path / "instance.tmp").mkdir()
    with pytest.raises(StateFullError, match="instance"):
        LocalState.open(tmp_path)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """A folder in use is refused, and available again once it is closed."""
    with LocalState.open(tmp_path), pytest.raises(StateInUseError):
        LocalState.open(tmp_path)
    LocalState.open(tmp_path).close()


def test_folders_of_the_two_kinds_are_not_mixed(tmp_path: Path) -> None:
    """The service refuses the folder of a filter, and the filter that of a service, naming the file."""
    NearDuplicateFilter.open(tmp_path / "filter").close()
    LocalState.open(tmp_path / "service").close()
    with pytest.raises(ForeignStateError, match=r"journal\.sqlite is in it"):
        LocalState.open(tmp_path / "filter")
    with pytest.raises(ForeignStateError, match="instance is in it"):
        NearDuplicateFilter.open(tmp_path / "service")
    NearDuplicateFilter.open(tmp_path / "filter").close()
