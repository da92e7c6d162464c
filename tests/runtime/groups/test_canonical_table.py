"""The table of canonical pages, against what `groups` says of the same log."""

from contextlib import closing
from pathlib import Path

import pytest

from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.log_records import RetractionRecord, sequence_at
from dedup_service.runtime.groups.canonical_table import CanonicalTable, TablePosition
from dedup_service.runtime.groups.log_groups import LogGroups
from dedup_service.runtime.kafka.messages.log_record import numbered
from tests.page_names import NamesInMemory
from tests.runtime.groups.canonical_logs import TimedLog
from tests.runtime.kafka.state.list_log import first, page


class Followed:
    """A table that follows a log, and the choices that its changes make."""

    def __init__(self, path: Path) -> None:
        self.table = CanonicalTable.open(path, "a-log")
        self.groups = LogGroups(Replica(NamesInMemory()), self.table)
        self.choices: dict[int, int] = {}
        self.changes = 0

    def take(self, log: TimedLog, start: int, end: int, *, groups_at_once: int = 3) -> None:
        """Take messages of a log, and go through the groups after a change of the policy."""
        for message in log.messages[start:end]:
            self.table.at_ms, self.table.host_text = message.timestamp, self.groups.replica.host_text()
            self.groups.take([(message.timestamp, *pair) for pair in numbered([message])])  # type: ignore[list-item]
            if self.groups.replica.policy is not None:
                self.table.set_policy(self.groups.replica.policy.canonical)
            while self.table.is_sweeping:
                self.table.sweep(groups_at_once)
        for change in self.table.drain():
            self.changes += 1
            assert self.choices.get(change.group) != (None if change.member is None else change.member.sequence)
            if change.member is None:
                del self.choices[change.group]
            else:
                self.choices[change.group] = change.member.sequence
        self.table.commit(TablePosition(log.messages[end - 1].offset + 1))


def test_nothing_is_left_of_a_page_that_was_retracted(tmp_path: Path) -> None:
    """Neither in the file nor beside it; its copy stands for the group."""
    told = "http://a.example/secret"
    log = TimedLog([first(), page(0, told, 1), page(1, "http://b.example/1", 1), RetractionRecord(told, "gone")])
    followed = Followed(tmp_path / "table")
    with closing(followed.table):
        followed.take(log, 0, 3)
        assert any(b"secret" in path.read_bytes() for path in tmp_path.iterdir())
        followed.take(log, 3, 4)
        assert not any(b"secret" in path.read_bytes() for path in tmp_path.iterdir())
    assert list(followed.choices.values()) == [sequence_at(log.messages[2].offset)]


@pytest.mark.parametrize("harm", ["another log", "rubbish", "another version"])
def test_a_file_that_cannot_be_used_is_begun_again(tmp_path: Path, harm: str) -> None:
    """The log has it all."""
    path = tmp_path / "table"
    log = TimedLog([first(), page(0, "http://a.example/1", 1)])
    followed = Followed(path)
    followed.take(log, 0, 2)
    if harm == "another version":
        followed.table._connection.execute("UPDATE state SET fields = 'sequence'")
    followed.table.close()
    if harm == "rubbish":
        path.write_bytes(b"rubbish" * 1000)
    with closing(CanonicalTable.open(path, "b-log" if harm == "another log" else "a-log")) as table:
        assert table.position == TablePosition(0)


def test_a_policy_that_a_log_cannot_have_is_refused(tmp_path: Path) -> None:
    """A function of somebody's is in no log: it would be imported because the log says so."""
    with closing(CanonicalTable.open(tmp_path / "table", "a-log")) as table:
        with pytest.raises(ConfigurationError, match="a log cannot have 'os:system'"):
            table.set_policy("os:system")
        assert table.policy == "earliest"


def test_the_share_of_host_sentences_is_that_of_when_the_page_came(tmp_path: Path) -> None:
    """A later policy that asks for it has it."""
    log = TimedLog([first(), page(0, "http://a.example/1", 1), page(1, "http://b.example/1", 1, 1)])
    followed = Followed(tmp_path / "table")
    with closing(followed.table):
        followed.take(log, 0, 3)
        stored = followed.table._member(sequence_at(log.messages[1].offset))
    assert stored is not None
    assert stored.host_sentences == 0.0
