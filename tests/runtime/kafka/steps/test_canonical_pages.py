"""The step `canonical`, killed at any place: the topic says what `groups` does, and each change is written once."""

import json
import logging
import random
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from dedup_service.core.errors import StateError
from dedup_service.core.log_records import LogRecord, RetractionRecord, sequence_at
from dedup_service.runtime.events import Observer
from dedup_service.runtime.groups.canonical_table import BEGINNING, TablePosition
from dedup_service.runtime.kafka.client.errors import TransactionLostError
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.messages.canonical import position_in
from dedup_service.runtime.kafka.messages.log_head import read_head
from dedup_service.runtime.kafka.state.canonical_state import CANONICAL_PAGES, CANONICAL_TABLE, restore_groups
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.mounted_bases import BASES_FOLDER, MountedBases
from dedup_service.runtime.kafka.state.temporary_replica import temporary_replica
from dedup_service.runtime.kafka.steps.canonical_pages import CanonicalStep
from tests.runtime.embedded.prepared import SPACE_ID, prepared
from tests.runtime.groups.canonical_logs import (
    LoggedMessage,
    TimedLog,
    expected_choices,
    generated_log,
    with_policy,
)
from tests.runtime.kafka.state.list_log import first, page
from tests.runtime.kafka.state.test_mounted_bases import first_with, made


class _KilledError(BaseException):
    """The process is killed here."""


class Topic:
    """The topic, with what a broker and a producer do. fault: called with "before" and "after" each transaction."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.transactions: list[int] = []
        self.fault: Callable[[str], None] = lambda _when: None

    def open(self, _stop: threading.Event) -> None:
        """Nothing is open."""

    def commit(self, messages: Sequence[Message]) -> None:
        """Append messages as one transaction."""
        self.fault("before")
        self.messages += messages
        self.transactions.append(len(self.messages))
        self.fault("after")

    def close(self) -> None:
        """Nothing is open."""

    def written(self) -> TablePosition:
        """Up to where in the log the topic is right."""
        return (position_in(self.messages[-1].headers) or BEGINNING) if self.messages else BEGINNING

    def choices(self, end: int | None = None) -> dict[int, int]:
        """The table that the first so many messages make; no message repeats the one before of its group."""
        table: dict[int, int] = {}
        for message in self.messages[:end]:
            group = int(message.key or b"")
            value = None if message.value is None else json.loads(message.value)
            assert table.get(group) != (value and value["canonical"]["sequence"])
            if value is None:
                del table[group]
            else:
                assert value["group"] == group
                table[group] = value["canonical"]["sequence"]
        return table


@contextmanager
def running(
    folder: Path,
    log: TimedLog,
    topic: Topic,
    *,
    snapshot_every: int = 40,
    stop: threading.Event | None = None,
    given: Mapping[str, str] | None = None,
    observer: Observer | None = None,
) -> Iterator[Callable[[int], CanonicalStep]]:
    """Yield what takes so many turns of a step that goes on in the folder, until `stop` is set. given: bases."""
    local = LocalState.open(folder, snapshot_every=snapshot_every, pages=CANONICAL_PAGES)
    end = stop or threading.Event()
    with ExitStack() as stack:
        stack.enter_context(closing(local))
        bases = None if given is None else mounted(log, given, folder, stack)
        restored = restore_groups(local, log, "a-log", topic.written(), stop=end, bases=bases)
        assert restored is not None
        with closing(restored.table):
            step = CanonicalStep(
                "canonical",
                local,
                restored,
                topic.written(),
                topic.written,
                log,  # type: ignore[arg-type]
                topic,  # type: ignore[arg-type]
                observer or Observer(),
            )

            def turns(count: int) -> CanonicalStep:
                for _ in range(count):
                    if not end.is_set():
                        step.turn(end)
                return step

            yield turns


def mounted(log: TimedLog, given: Mapping[str, str], folder: Path, stack: ExitStack) -> MountedBases:
    """The bases of a log."""
    begun = read_head(log).policy
    assert begun is not None
    bases = MountedBases.open(begun.policy.bases, given, folder / BASES_FOLDER, SPACE_ID)
    return stack.enter_context(closing(bases))


def logged_in(log: TimedLog, position: TablePosition) -> list[LoggedMessage]:
    """The messages of a log below a position."""
    return [message for message in log.messages if message.offset < position.offset]


def followed(tmp_path: Path, log: TimedLog) -> Topic:
    """The topic after the whole log, without a fault."""
    topic = Topic()
    with running(tmp_path, log, topic) as turns:
        turns(len(log.messages) + 40)
    return topic


def check(topic: Topic, log: TimedLog, given: Mapping[str, str] | None = None) -> None:
    """After each transaction that no sweep continues, the topic is what `groups` says of the log up to there."""
    for end in topic.transactions:
        position = position_in(topic.messages[end - 1].headers)
        assert position is not None
        if position.swept == TablePosition(0).swept:
            with temporary_replica(log, given or {}) as reading:
                assert topic.choices(end) == expected_choices(logged_in(log, position), reading.replica)
    with temporary_replica(log, given or {}) as reading:
        assert topic.choices() == expected_choices(log.messages, reading.replica)


def with_unknown_policies(records: list[LogRecord], rng: random.Random) -> list[LogRecord]:
    """A log with some policies that are not known, and one behind them that is."""
    for _ in range(4):
        records.insert(rng.randint(1, 40), with_policy("newest"))
    return [*records[:55], with_policy("longest"), *records[55:]]


@pytest.mark.parametrize(("seed", "based"), [(0, False), (1, False), (2, False), (3, True), (4, False)])
def test_a_step_that_is_killed_anywhere_writes_each_change_once(
    seed: int, based: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after the transaction, between two turns, with and without its folder, also of a log with bases.

    A group that began in a base has the number of its page there, and its pages of the log. Of one log, some policies
    are not known.
    """
    monkeypatch.setattr("dedup_service.runtime.kafka.steps.canonical_pages._GROUPS_AT_ONCE", 3)
    monkeypatch.setattr("dedup_service.runtime.kafka.steps.canonical_pages.MESSAGES_AT_ONCE", 3)
    rng = random.Random(seed)
    given, begun = None, None
    if based:
        pages = [prepared(f"http://a.example/{number}", number, version=number % 3) for number in range(12)]
        given = {name: str(made(tmp_path / name, pages[at::2])) for at, name in enumerate(("one", "two"))}
        begun = first_with(given, tmp_path)
    records = generated_log(rng, 70, begun)
    log = TimedLog(with_unknown_policies(records, rng) if seed == 4 else records, together=seed % 2 == 1)
    topic = Topic()
    kills = 0

    def kill(_when: str) -> None:
        if rng.random() < 0.35:
            raise _KilledError

    topic.fault = kill
    ended = False
    while not ended:
        if rng.random() < 0.1:
            shutil.rmtree(tmp_path / "state", ignore_errors=True)
        if rng.random() < 0.1:
            (tmp_path / "state" / CANONICAL_TABLE).unlink(missing_ok=True)
        try:
            with running(tmp_path / "state", log, topic, given=given) as turns:
                turns(rng.randint(1, 24))  # a known policy is 54 records behind the first, three of them a turn
                step = turns(0)
                step._take_snapshot()
                ended = step._table.position.offset > log.messages[-1].offset and not step._table.is_sweeping
        except _KilledError:
            kills += 1
    assert kills > 1
    check(topic, log, given)
    if begun is not None:
        assert any(group <= begun.policy.based_on for group in topic.choices())


def test_a_transaction_of_which_it_is_not_known_whether_it_was_committed_is_looked_up(tmp_path: Path) -> None:
    """It is repeated if the topic does not have it, and only then."""
    log = TimedLog(generated_log(random.Random(3), 80))
    topic = Topic()
    rng = random.Random(4)
    lost = {"before": 0, "after": 0}

    def lose(when: str) -> None:
        if rng.random() < 0.3:
            lost[when] += 1
            raise TransactionLostError("the coordinator did not answer")

    topic.fault = lose
    with running(tmp_path, log, topic) as turns:
        turns(120)
    assert min(lost.values()) > 0
    check(topic, log)


def test_two_processes_do_not_write_one_topic(tmp_path: Path) -> None:
    """The one that finds what it has not written ends, and writes nothing of what it had."""
    log = TimedLog(generated_log(random.Random(5), 60))
    topic = Topic()
    with running(tmp_path / "one", log, topic) as turns:

        def other(_when: str) -> None:
            topic.fault = lambda _when: None
            with running(tmp_path / "two", log, topic) as more:
                more(80)
            raise TransactionLostError("another producer has taken over the transactional id")

        topic.fault = other
        with pytest.raises(StateError, match="another process writes to canonical"):
            turns(len(log.messages))
    check(topic, log)


def test_a_topic_that_was_made_again_is_filled_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The table remembers what it has written."""
    log = TimedLog(generated_log(random.Random(6), 80))
    assert followed(tmp_path, log).choices() == expected_choices(log.messages)
    with caplog.at_level(logging.WARNING):
        again = followed(tmp_path, log)
    assert "the topic has lost messages" in caplog.text or "there is no snapshot" in caplog.text
    check(again, log)


def test_a_log_that_is_shorter_than_the_table_is_refused(tmp_path: Path) -> None:
    """It is another one under the same name, or lost records."""
    records: list[LogRecord] = [first(), *(page(at, f"http://a.example/{at}", at) for at in range(30))]
    topic = Topic()
    with running(tmp_path, TimedLog(records), topic, snapshot_every=20) as turns:
        turns(1)._take_snapshot()
        turns(20)
    with (
        pytest.raises(StateError, match="the log ends at"),
        running(tmp_path, TimedLog(records[:20]), topic),
    ):
        pass


UNKNOWN = "os:system", "newest", "hosts:a/b", "hosts:" + "a.example," * 10_000


@pytest.mark.parametrize("unknown", UNKNOWN, ids=lambda unknown: unknown[:10])
def test_a_policy_that_is_not_known_holds_the_step_up(unknown: str, tmp_path: Path) -> None:
    """Nothing is written by a policy that is not that of the log, nor imported; the step says what it waits for.

    It goes on as soon as another policy is in force, also after a start, and its topic is as if it had not waited.
    """
    stories: list[LogRecord] = [page(at, f"http://{'ab'[at % 2]}.example/{at}", at // 2, at % 2) for at in range(12)]
    begun = [first(), *stories[:6], with_policy(unknown)]
    whole = TimedLog([*begun, *stories[6:10], with_policy("longest"), *stories[10:]])
    log, topic = TimedLog([*begun, *stories[6:10]]), Topic()
    held_at = log.messages[len(begun) - 1].offset
    with running(tmp_path / "one", log, topic) as turns:
        step = turns(20)
        assert step._table.position.offset < held_at + 1
        waits = step.status.waits_for
        assert f"record {sequence_at(held_at)} of the log (offset {held_at}), {unknown[:100]!r}, is not known" in waits
        assert "update twinsieve, or put another one in force with `twinsieve policy set --canonical`" in waits
        assert len(waits) < 500
        step._take_snapshot()
    assert topic.choices() == expected_choices(log.messages[: len(begun) - 1])
    with running(tmp_path / "one", log, topic) as turns:
        assert turns(5).status.waits_for
        log.messages[:] = whole.messages
        log.records[:] = whole.records
        assert not turns(30).status.waits_for
    check(topic, whole)
    assert followed(tmp_path / "two", whole).choices() == topic.choices()


def test_a_message_names_the_page_and_a_tombstone_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tombstone comes when no page of the group is left."""
    urls = "http://a.example/1", "http://b.example/1"
    pages: list[LogRecord] = [page(at, url, 1) for at, url in enumerate(urls)]
    log = TimedLog([first(), *pages, *(RetractionRecord(url, "gone") for url in urls)])
    monkeypatch.setattr("dedup_service.runtime.kafka.steps.canonical_pages.MESSAGES_AT_ONCE", 1)
    topic = followed(tmp_path, log)
    group = sequence_at(log.messages[1].offset)
    assert [message.key for message in topic.messages] == [str(group).encode()] * 3
    both, copy, none = (message.value and json.loads(message.value) for message in topic.messages)
    names = [{"id": url, "url": url, "sequence": sequence_at(2 * at)} for at, url in enumerate(urls, 1)]
    assert both == {"group": group, "canonical": names[0], "policy": "earliest", "at": "1970-01-01T00:00:04.000Z"}
    assert (copy["canonical"], none) == (names[1], None)
    headers = dict(topic.messages[0].headers)
    assert (headers["ce_type"], headers["ce_id"]) == (b"twinsieve.canonical.v1", f"{group}/5".encode())
