"""Pages of files in a running service: once in the log, whatever ends the command, and verdicts as of an oracle."""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from dedup_service.core.log_records import PageRecord, is_backfilled, is_reported
from dedup_service.interfaces.cli.main import run
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.messages.log_record import numbered
from dedup_service.runtime.kafka.state.pending_outcomes import BACKFILLED
from dedup_service.runtime.kafka.state.step_offsets import BACKFILL_DECIDED, StepOffsets
from dedup_service.runtime.kafka.topics import Layout, Topics, create, remove
from tests.chaos.reading import Tail, read_all
from tests.crawls.stream import Kind, stream
from tests.hangs import HANG_S
from tests.integration.conftest import Broker
from tests.integration.serving import ROOT, Serving
from tests.integration.test_written_once import await_records
from tests.oracle.log import oracle_of

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("TWINSIEVE_KILLS", "2"))

Backfilling = Callable[..., subprocess.Popen[bytes]]


def lines(seed: int, count: int) -> tuple[list[bytes], list[bytes]]:
    """Lines of JSON, some of them bad and none of them empty, and those that are pages."""
    sent = [one for one in stream(seed, count) if one.value]
    pages = [one.value for one in sent if one.truth.kind is not Kind.POISON and one.value]
    return [one.value for one in sent if one.value], pages


def write(path: Path, values: Sequence[bytes]) -> Path:
    path.write_bytes(b"".join(value + b"\n" for value in values))
    return path


@pytest.fixture
def options(broker: Broker, topics: Topics) -> tuple[str, ...]:
    """The options of a backfill that wants to be fast."""
    where = ("--bootstrap", broker.bootstrap, "--prefix", topics.prefix)
    return ("backfill", *where, "--share", "1", "--processes", "1", "--json")


@pytest.fixture
def start(options: tuple[str, ...]) -> Iterator[Backfilling]:
    """Start backfills as processes of their own; they are killed afterwards."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dedup_service.interfaces.cli", *options, *map(str, arguments)]
        started.append(subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


class LoggedPages:
    """Follows the log. count: pages of files in it."""

    def __init__(self, broker: Broker, topics: Topics) -> None:
        self._tail = Tail(broker.bootstrap, [topics.fingerprints])
        self.count = 0

    def more(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the log has more pages, or the process has ended."""
        before, deadline = self.count, time.monotonic() + HANG_S
        while self.count == before and process.poll() is None:
            assert time.monotonic() < deadline
            for message in self._tail.poll():
                records = (record for _, record in numbered([message]))
                self.count += sum(isinstance(one, PageRecord) and is_backfilled(one.source.topic) for one in records)


def begun(serving: Serving) -> None:
    """Wait until the service is ready: it has begun the log."""
    serving.wait_for(lambda: serving.get("/readyz")[0] == 200)


def complaints(broker: Broker, topics: Topics, backfilled: int) -> list[str]:
    """What is wrong with log and verdicts. backfilled: pages of files that the log should have."""
    found = read_all(broker.bootstrap, [topics.fingerprints, topics.verdicts])
    log = numbered(found[topics.fingerprints])
    oracle = oracle_of(log)
    places = Counter(
        record.source for _, record in log if isinstance(record, PageRecord) and is_backfilled(record.source.topic)
    )
    wanted = Counter(
        answer.value
        for source, answer in oracle.answers.items()
        if answer.value is not None and is_reported(source.topic)
    )
    written = Counter(record.value for record in found[topics.verdicts])
    said: list[str] = []
    said += [f"{place} is {count} times in the log" for place, count in places.items() if count > 1]
    said += [] if len(places) == backfilled else [f"{len(places)} pages of files in the log, not {backfilled}"]
    said += [f"missing verdict {value!r}" for value in (wanted - written)]
    said += [f"verdict too many {value!r}" for value in (written - wanted)]
    return said[:10]


def summary_of(text: str) -> dict[str, object]:
    """The summary among what a command says."""
    return json.loads(next(line for line in text.splitlines() if line.startswith("{")))  # type: ignore[no-any-return]


@pytest.mark.long
def test_backfills_killed_at_random_while_a_crawl_goes_on_leave_each_page_once(
    broker: Broker,
    topics: Topics,
    serve: Callable[..., Serving],
    start: Backfilling,
    options: tuple[str, ...],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """SIGKILL at any instant, also of the service: the next run goes on, and every verdict is the oracle's, once."""
    rng = random.Random(5)
    (first, good), (second, more_good) = lines(51, 800 * KILLS), lines(52, 600 * KILLS)
    files = [write(tmp_path / "first.jsonl", first), write(tmp_path / "second.jsonl", second)]
    crawled = [one for one in stream(53, 100 * KILLS) if one.value is not None]
    serving = serve(snapshot_every=500)
    begun(serving)
    logged = LoggedPages(broker, topics)
    for part in range(KILLS):
        process = start("--outputs", "verdicts", "--rate", 400, *files)
        sent = crawled[100 * part : 100 * part + 100]
        messages = [Message(topics.pages, one.value, one.key, one.headers) for one in sent]
        append(broker.connection, topics.pages, messages)
        logged.more(process)
        time.sleep(rng.uniform(0, 0.3))  # an instant that nothing announces
        process.kill()
        process.communicate()
        if part % 3 == 1:
            serving.process.kill()
            serving.process.wait()
            serving = serve(snapshot_every=500)
    assert run([*options, "--outputs", "verdicts", *map(str, files)]) in {0, 3}  # 3 if it meets a bad line
    already = summary_of(capfd.readouterr().err)["already"]
    assert isinstance(already, int)
    assert already > 0
    pages = len(good) + len(more_good)
    await_records(broker, (topics.verdicts, topics.dlq), pages + len(crawled))
    assert complaints(broker, topics, pages) == []


@pytest.mark.long
def test_of_two_at_once_the_later_one_goes_on_and_outputs_none_writes_nothing(
    broker: Broker,
    topics: Topics,
    serve: Callable[..., Serving],
    start: Backfilling,
    options: tuple[str, ...],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The earlier one stops and says why; each page is in the log once, and a copy in the crawl is a duplicate."""
    values, good = lines(54, 1800)
    file = write(tmp_path / "pages.jsonl", values)
    begun(serve())
    logged = LoggedPages(broker, topics)
    earlier = start("--rate", 150, file)
    logged.more(earlier)
    assert run([*options, str(file)]) == 3
    said = earlier.communicate(timeout=HANG_S)[1].decode()
    assert (earlier.returncode, "has taken the backfill 'backfill' over" in said) == (1, True), said
    story = max(good, key=lambda value: len(json.loads(value).get("text") or ""))
    copy = {**json.loads(story), "url": "https://copy.example/1", "id": "copy"}
    append(broker.connection, topics.pages, [Message(topics.pages, json.dumps(copy).encode(), partition=1)])
    await_records(broker, [topics.verdicts], 1)
    (verdict,) = read_all(broker.bootstrap, [topics.verdicts])[topics.verdicts]
    assert json.loads(verdict.value)["verdict"] == "duplicate"
    assert complaints(broker, topics, len(good)) == []
    capfd.readouterr()
    assert run([*options, str(file)]) == 0
    again = summary_of(capfd.readouterr().err)
    assert (again["pages"], again["bad_records"]) == (0, 0)
    assert run([*options, "--outputs", "verdicts", str(file)]) == 2
    assert "was begun with --outputs none" in capfd.readouterr().err
    write(file, [b'{"url": "https://new.example/", "text": "new"}', *values])
    assert run([*options, str(file)]) == 1
    assert "the file has changed" in capfd.readouterr().err
    assert run([*options, "--name", "other", "--space", "tf", str(file)]) == 2
    assert "is of space" in capfd.readouterr().err


@pytest.mark.long
def test_a_replay_writes_no_verdict_that_was_not_wanted_and_leaves_none_to_be_written(
    broker: Broker, topics: Topics, serve: Callable[..., Serving], options: tuple[str, ...], tmp_path: Path
) -> None:
    """Of pages of files; the service that goes on there takes what it finds for written."""
    silent, wanted = lines(59, 60)[1], lines(60, 70)[1]
    begun(serve())
    for outputs, values in (("none", silent), ("verdicts", wanted)):
        file = write(tmp_path / f"{outputs}.jsonl", values)
        assert run([*options, "--name", outputs, "--outputs", outputs, str(file)]) == 0
    await_records(broker, [topics.verdicts], len(wanted))
    new = Topics(f"new{topics.prefix}")
    create(broker.connection, new, Layout(partitions=4))
    try:
        where = ("--bootstrap", broker.bootstrap, "--prefix", topics.prefix)
        assert run(["replay", *where, "--to-prefix", new.prefix]) == 0
        verdicts = read_all(broker.bootstrap, [new.verdicts])[new.verdicts]
        assert Counter(json.loads(one.value)["topic"].split(":")[1] for one in verdicts) == {"verdicts": len(wanted)}
        log = numbered(read_all(broker.bootstrap, [new.fingerprints])[new.fingerprints])
        with closing(StepOffsets(broker.connection, new)) as offsets:
            offsets.refresh()
            assert offsets.of(BACKFILL_DECIDED) == {BACKFILLED: log[-1][0] + 1}
    finally:
        remove(broker.connection, new)


def test_outputs_all_publishes_each_page_once(
    broker: Broker, topics: Topics, serve: Callable[..., Serving], options: tuple[str, ...], tmp_path: Path
) -> None:
    """The service answers them as pages of the crawl, byte for byte; a second run publishes nothing."""
    values, good = lines(56, 300)
    file = write(tmp_path / "pages.jsonl", values)
    begun(serve())
    for _ in range(2):
        run([*options, "--outputs", "all", str(file)])
    published = [record.value for record in read_all(broker.bootstrap, [topics.pages])[topics.pages]]
    assert Counter(published) == Counter(good)
    await_records(broker, [topics.unique, topics.duplicate], len(good))
