"""What a member reports about its partitions, with the library's consumer replaced."""

from collections.abc import Iterable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import RebalanceInProgressError
from kafka.structs import MemberState

from dedup_service.runtime.kafka.client import group_consumer, internals
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.group_consumer import GroupConsumer, _Change

MINE = TopicPartition("pages", 0)


class Library:
    """The library's consumer: a stable member that has `MINE`."""

    def group_metadata(self) -> Any:
        return SimpleNamespace(state=MemberState.STABLE, generation_id=1, member_id="a")

    def assignment(self) -> set[TopicPartition]:
        return {MINE}

    def poll(self, **_: object) -> dict[TopicPartition, list[Any]]:
        return {}

    def seek(self, *_: object) -> None:
        """Accept any position."""


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace what is done inside the library."""
    for name, answer in (("is_joining", False), ("is_dead", False), ("is_fenced_member", False), ("topic_id", None)):
        monkeypatch.setattr(internals, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(internals, "has_coordinator", lambda _: True)
    monkeypatch.setattr(internals, "release_paused_records", lambda _: None)
    monkeypatch.setattr(internals, "positions", lambda _: {MINE: 7})
    monkeypatch.setattr(internals, "committed", lambda *_: {MINE: 7})
    monkeypatch.setattr(group_consumer.GroupConsumer, "_asking_for_offsets", lambda *_: _Nothing())


@pytest.mark.usefixtures("replaced")
def test_a_partition_that_a_rewind_started_is_reported_when_it_is_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its offsets came too late for `poll`; unreported, its records would be written by two processes."""
    answers: list[object] = [UnreachableError("a transaction is open"), {MINE: 7}]

    def committed(_reader: object, _partitions: Iterable[TopicPartition], _timeout_s: float) -> object:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(internals, "committed", committed)
    revoked: list[frozenset[TopicPartition]] = []
    member = GroupConsumer(Connection("a:1"), "pages", "g", "i", on_revoked=revoked.append)
    member._consumer = Library()
    member._changes._changes.append(_Change(gained=True, partitions=frozenset({MINE})))
    member.poll(0.0, 1)
    assert member.rewind() == {MINE: 7}
    member._changes._changes.append(_Change(gained=False, partitions=frozenset({MINE})))
    member.poll(0.0, 1)
    assert revoked == [frozenset({MINE})]


@pytest.mark.usefixtures("replaced")
def test_a_partition_that_comes_back_is_behind_until_its_end_is_known_again() -> None:
    """Where it ended before says nothing: others have read it meanwhile, and it has got records."""
    member = GroupConsumer(Connection("a:1"), "pages", "g", "i", on_revoked=lambda _: None)
    member._consumer = Library()
    member._committed_ends = {MINE: 7}
    assert member.behind == frozenset()
    for gained in (False, True):
        member._changes._changes.append(_Change(gained=gained, partitions=frozenset({MINE})))
        member.poll(0.0, 1)
    assert member.behind == {MINE}


@pytest.mark.parametrize(
    ("leader", "known", "repeated"),
    [("i", "", True), ("i", "i-new", False), ("i-2", "", False), ("other", "", False)],
)
def test_a_leader_that_comes_back_joins_once_more(leader: str, known: str, repeated: bool) -> None:
    """Told that its former id leads, it would leave partitions that are added to nobody; others need no second join."""
    coordinator = SimpleNamespace(group_instance_id="i", _generation=SimpleNamespace(member_id=known))
    coordinator._process_join_group_response = lambda response, _: response
    internals.join_again_as_leader(SimpleNamespace(_coordinator=coordinator))
    answer = SimpleNamespace(leader=f"{leader}-old", member_id="i-new")
    with pytest.raises(RebalanceInProgressError) if repeated else nullcontext():
        assert coordinator._process_join_group_response(answer, 0.0) is answer


class _Nothing:
    def __enter__(self) -> None:
        """Translate nothing."""

    def __exit__(self, *_: object) -> None:
        """Translate nothing."""
