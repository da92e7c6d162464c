"""The whole service on a real broker: each page is answered once, whichever process joins, leaves or rewinds."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from dedup_service.core.errors import TwinsieveError
from dedup_service.core.log_records import PolicyRecord
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.runtime import memory_limit
from dedup_service.runtime.events import BatchEvent, Observer, ProblemEvent
from dedup_service.runtime.kafka.client.admin import committed_offsets
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.control.operator_records import (
    ForeignLogError,
    PolicyDiffersError,
    RequestedPolicy,
    append_policy,
)
from dedup_service.runtime.kafka.service import DECIDE, Service, ServiceSettings
from dedup_service.runtime.kafka.topics import Layout, OutputMode, Topics, create, remove
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from tests.chaos.checking import check
from tests.chaos.reading import read_all
from tests.crawls.stream import Sent, stream
from tests.hangs import HANG_S, wait_until
from tests.integration.conftest import Broker

pytestmark = pytest.mark.slow

PAGES = 300


class Progress(Observer):
    """An observer that wakes a thread that waits for a number of decided records."""

    def __init__(self) -> None:
        self.done = self.prepared = 0
        self.problems: list[ProblemEvent] = []
        self.failure: BaseException | None = None
        self._changed = threading.Condition()

    def batch(self, fact: BatchEvent) -> None:
        with self._changed:
            self.done += fact.records if fact.step == "decide" else 0
            self.prepared += fact.records if fact.step == "fingerprint" else 0
            self._changed.notify_all()

    def problem(self, fact: ProblemEvent) -> None:
        self.problems.append(fact)

    def failed(self, error: BaseException) -> None:
        """Record the error that ended a service."""
        with self._changed:
            self.failure = self.failure or error
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds, checked after every batch; raise the error that ended a service."""
        with self._changed:
            ended = self._changed.wait_for(lambda: self.failure is not None or condition(), HANG_S)
        if self.failure is not None:
            raise self.failure
        assert ended, f"only {self.done} decided; {self.problems}"


def settings(broker: Broker, topics: Topics, state: Path, **more: object) -> ServiceSettings:
    """A service of the group `g` on these topics."""
    return ServiceSettings(connection=broker.connection, state=state, group="g", prefix=topics.prefix, **more)  # type: ignore[arg-type]


@contextmanager
def running(chosen: ServiceSettings, progress: Progress, *observers: Progress) -> Iterator[Service]:
    """Run the service until the block ends; raise the error that ended it."""
    service, stop = Service(chosen, [progress, *observers]), threading.Event()

    def run() -> None:
        try:
            service.run(stop)
        except BaseException as error:
            progress.failed(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield service
    finally:
        stop.set()
        thread.join(HANG_S)
    if progress.failure is not None:
        raise progress.failure


def publish(broker: Broker, topics: Topics, sent: Sequence[Sent]) -> None:
    """Put records into `pages`."""
    append(broker.connection, topics.pages, [Message(topics.pages, one.value, one.key, one.headers) for one in sent])


def everything_decided(broker: Broker, topics: Topics) -> Callable[[], bool]:
    """Whether the deciding group has reached the end of `pages`."""

    def decided() -> bool:
        ends = {(r.topic, r.partition): r.offset + 1 for r in read_all(broker.bootstrap, [topics.pages])[topics.pages]}
        done = committed_offsets(broker.connection, f"{topics.prefix}g.decide", topics.pages)
        return {(at.topic, at.partition): offset for at, offset in done.items()} == ends

    return decided


@pytest.mark.parametrize("outputs", OutputMode)
def test_two_services_share_the_work_and_each_record_is_answered_once(
    broker: Broker, topics: Topics, tmp_path: Path, outputs: OutputMode
) -> None:
    """Verdicts equal the oracle's byte for byte, pages go to their topics, bad records to the dead letters.

    Both services prepare pages, and both decide: the records are published once each has partitions for each step.
    """
    sent = list(stream(11, PAGES))
    progress, first, second = Progress(), Progress(), Progress()
    one, two = (settings(broker, topics, tmp_path / name, outputs=outputs) for name in ("one", "two"))
    with running(one, progress, first) as here, running(two, progress, second) as there:
        deadline = time.monotonic() + HANG_S
        while not all(len(both_steps(service)) == 2 for service in (here, there)):
            assert progress.failure is None, progress.failure
            assert time.monotonic() < deadline, (both_steps(here), both_steps(there))
            time.sleep(0.02)
        publish(broker, topics, sent)
        progress.wait_for(lambda: progress.done >= PAGES)
    findings = check(broker.bootstrap, topics, sent, kinds=outputs)
    assert findings.complaints == []
    assert findings.counts["pages"] == PAGES
    assert progress.done == PAGES
    assert min(first.done, second.done, first.prepared, second.prepared) > 0
    assert first.done + second.done == first.prepared + second.prepared == PAGES


def both_steps(service: Service) -> set[str]:
    """Return the steps of a service that have partitions."""
    return {step.step for step in service.status().steps if step.assigned}


@pytest.mark.long
def test_a_service_whose_memory_is_used_up_lets_pages_expire(
    broker: Broker, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds are a record of the log; the same command line starts again, with a limit."""
    limit_bytes, used = 16 << 20, [0]
    monkeypatch.setattr(memory_limit, "process_memory", lambda: used[0])
    monkeypatch.setattr(memory_limit, "CHECK_EVERY", 20)
    sent = list(stream(15, PAGES))
    progress, more = Progress(), {"keep": Keep.parse("90d"), "max_memory_bytes": limit_bytes}
    with running(settings(broker, topics, tmp_path / "state", **more), progress) as service:
        publish(broker, topics, sent[:100])
        progress.wait_for(lambda: progress.done >= 100)
        used[0] = limit_bytes + 1
        for some in (sent[100:200], sent[200:]):  # the bounds are in the log before the second half
            publish(broker, topics, some)
            progress.wait_for(everything_decided(broker, topics))
        policy, kept = service.ask(lambda replica: (replica.policy, len(replica)))
    assert policy is not None
    assert policy.keep.lowers(Keep.parse("90d"))
    assert 0 < kept <= (policy.keep.max_pages or 0)
    assert "memory_limit" in {problem.kind for problem in progress.problems}
    used[0] = 0  # of a new process
    with running(settings(broker, topics, tmp_path / "state", **more), again := Progress()) as service:
        publish(broker, topics, sent[:1])
        again.wait_for(everything_decided(broker, topics))
        assert service.ask(lambda replica: replica.policy) == policy


@pytest.mark.long
def test_a_process_without_partitions_bounds_its_memory_too(
    broker: Broker, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has all kept pages as the others do; the bounds that it asks for are in force for all."""
    limit_bytes, used = 16 << 20, [0]
    monkeypatch.setattr(memory_limit, "process_memory", lambda: used[0])
    monkeypatch.setattr(memory_limit, "CHECK_EVERY", 20)
    single, keep = Topics(f"{topics.prefix}single."), Keep.parse("90d")
    create(broker.connection, single, Layout(partitions=1))
    sent, progress, idle = list(stream(15, PAGES)), Progress(), Progress()
    standby = settings(
        broker, single, tmp_path / "b", steps=frozenset({DECIDE}), keep=keep, max_memory_bytes=limit_bytes
    )
    with running(settings(broker, single, tmp_path / "a", keep=keep), progress) as service:
        wait_until(lambda: len(both_steps(service)) == 2)
        with running(standby, idle) as second:
            wait_until(lambda: bool(second.status().steps))
            publish(broker, single, sent[:100])
            progress.wait_for(lambda: progress.done >= 100)
            used[0] = limit_bytes + 1
            publish(broker, single, sent[100:])
            wait_until(lambda: "memory_limit" in {problem.kind for problem in idle.problems})
            wait_until(lambda: service.ask(lambda replica: replica.policy and replica.policy.keep.lowers(keep)))
            assert both_steps(second) == set()
            assert "memory_limit" not in {problem.kind for problem in progress.problems}
    remove(broker.connection, single)


@pytest.mark.parametrize(
    ("more", "error", "says"),
    [
        ({"rule": rule_for(k=1)}, PolicyDiffersError, "decides by rule balanced, requested is balanced:1: leave"),
        ({"action": Action.DROP}, PolicyDiffersError, "action flag, requested is drop"),
        ({"space": SpaceOptions(scheme="tf")}, ForeignLogError, "another log with --prefix"),
    ],
)
def test_a_service_with_another_policy_refuses_to_start(
    broker: Broker, topics: Topics, tmp_path: Path, more: dict[str, object], error: type[TwinsieveError], says: str
) -> None:
    """The error names both values and what to do; the log is unchanged."""
    append_policy(
        broker.connection,
        topics,
        PolicyRecord(RequestedPolicy(build_fingerprinter().space_id).policy, initial=True, log="a"),
    )
    with pytest.raises(error, match=says):
        Service(settings(broker, topics, tmp_path / "state", **more)).run(threading.Event())
    assert len(read_all(broker.bootstrap, [topics.fingerprints])[topics.fingerprints]) == 1


def test_bounds_that_the_log_keeps_are_said_at_the_start(
    broker: Broker, topics: Topics, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They were given to an earlier service, and this one does not name any."""
    requested = RequestedPolicy(build_fingerprinter().space_id, keep=Keep.parse("90 pages"))
    append_policy(broker.connection, topics, PolicyRecord(requested.policy, initial=True, log="a"))
    caplog.set_level("INFO")
    line = "the log keeps 90 pages, as it was told before: `policy set --keep` changes it"
    with running(settings(broker, topics, tmp_path / "state"), Progress()):
        wait_until(lambda: line in caplog.messages)


HTML = Message("pages", b'{"url": "https://a.example/html", "html": "<p>a text"}', b"a key")
"""A page that a worker process extracts."""


def test_a_stop_kills_workers_that_do_not_finish_within_its_budget(
    broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    """A worker that stands still would otherwise be waited for until twice the time limit of a page, 20 minutes."""
    before = set(multiprocessing.active_children())
    service = Service(settings(broker, topics, tmp_path / "s", drain_s=2.0, page_timeout_s=600.0))
    stop, deadline = threading.Event(), time.monotonic() + HANG_S
    thread = threading.Thread(target=service.run, args=(stop,), daemon=True)
    thread.start()
    append(broker.connection, topics.pages, [HTML])
    while (pool := service.pool_state()) is None or not pool.ready:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (worker,) = set(multiprocessing.active_children()) - before
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        append(broker.connection, topics.pages, [HTML])
        while (pool := service.pool_state()) is None or not pool.busy:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        stop.set()
        thread.join(HANG_S)
        assert not thread.is_alive()
        assert not set(multiprocessing.active_children()) - before
    finally:
        worker.kill()
