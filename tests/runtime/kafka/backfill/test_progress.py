"""How far a backfill is: what is written is read, also by those who only know offsets of steps."""

from dataclasses import dataclass

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.backfill.backfill import Backfill, BackfillItem, BackfillOutputs
from dedup_service.runtime.kafka.backfill.progress import BackfilledFile, BackfillProgress, BackfillRun
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.state.step_offsets import DECIDE, StepOffsets
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.readers.record import Mark

NOWHERE = Connection("nowhere:1")
RUN = BackfillRun("backfill:a:1f", "none", "r1")


@dataclass
class Stored:
    """A record of `dedup.offsets`."""

    key: bytes | None
    value: bytes | None


def stored(message: Message) -> Stored:
    return Stored(message.key, message.value)


def test_files_and_the_run_are_read_as_they_were_written() -> None:
    """Each file has its key, so that compaction keeps the latest of each; backfills do not share any."""
    progress, other = (BackfillProgress(NOWHERE, Topics(), name) for name in ("a", "a.b"))
    files = [
        BackfilledFile(name="/f1", number=1, records=1, last="1f", pages=1, begins=0, ends=7),
        BackfilledFile(name="/f2", number=2, records=2, last="1f", pages=1),
    ]
    messages = [progress.run_message(RUN), *(progress.file_message(RUN.topic, file) for file in files)]
    assert len({message.key for message in messages}) == 3
    assert {message.partition for message in messages} == {0}
    for reader in (progress, other):
        reader._take(list(map(stored, messages)))
    assert (progress.run, progress.files, progress.next_number) == (RUN, {file.name: file for file in files}, 3)
    assert (other.run, other.files, other.next_number) == (None, {}, 1)


def test_readers_of_offsets_of_steps_are_not_disturbed() -> None:
    """They take the messages for those of another step; what is damaged is passed over by both."""
    progress, steps = BackfillProgress(NOWHERE, Topics(), "a"), StepOffsets(NOWHERE, Topics())
    message = progress.file_message(RUN.topic, BackfilledFile(name="/f", number=1, records=7))
    damaged = [Stored(b"backfill/a/1", value) for value in (b"", b"{", b'{"topic":"t"}', b'{"offset":-1}', None)]
    for reader in (progress, steps):
        reader._take([stored(message), *damaged, Stored(None, b"\xff")])
        assert reader.of(DECIDE) == {}
    assert steps.of("backfill") == {TopicPartition(RUN.topic, 1): 7}
    assert progress.files["/f"].records == 7


@pytest.mark.parametrize("name", ["", "a/b", "a:b", "a b", "ä", "x" * 101])
def test_a_name_that_no_transactional_id_can_have_is_refused(name: str) -> None:
    """The message says what is allowed."""
    with pytest.raises(ConfigurationError, match="use letters"):
        Backfill(NOWHERE, Topics(), name, BackfillOutputs.NONE, "space")


def test_a_file_is_read_on_where_its_last_record_begins() -> None:
    """After any batches; not where a position is missing, as of an earlier version or behind a record without one."""
    backfill = Backfill(NOWHERE, Topics(), "a", BackfillOutputs.NONE, "space")

    def done(number: int, ends: int | None) -> Mark | None:
        items = [BackfillItem("/f", number, f"{number:02x}", None, ends=ends)]
        backfill._progress.note(backfill._files_after(items)["/f"])
        return backfill.mark("/f")

    assert backfill.mark("/f") is None
    assert done(1, 10) == Mark(0, 0)
    assert done(2, 25) == Mark(1, 10)
    assert done(4, 60) is None, "record 3 could not be read"
    assert done(5, 75) == Mark(4, 60)
    assert done(6, None) is None
    assert done(7, 100) is None
    assert done(8, 110) == Mark(7, 100)
