"""The brokers refuse the user: `twinsieve serve` ends with one line that says what to grant, and nothing is lost."""

import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from dedup_service.runtime.kafka.client.admin import committed_offsets
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.errors import NotAuthorisedError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer, PartitionReader
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from deploy.kafka import Cluster
from deploy.kafka.access_lists import DENY_BY_DEFAULT, AccessLists, Grant, needed
from tests.hangs import HANG_S
from tests.integration.serving import Serving
from tests.interfaces.cli.running import article, page

pytestmark = [pytest.mark.long, pytest.mark.broker]

GROUP = "acl-group"
FAILED = 1
"""Exit code: somebody should read the last line of the log (docs/service.md)."""

"""An exit takes a start of Python, 3 s here, and at most one drained step; the old code went on for ever."""


@pytest.fixture(scope="module")
def guarded() -> Iterator[Cluster]:
    """A broker whose users may do nothing until it is granted."""
    with Cluster(sasl=True, settings=DENY_BY_DEFAULT) as cluster:
        yield cluster


@pytest.fixture
def lists(guarded: Cluster) -> AccessLists:
    """Its access control lists."""
    return AccessLists(guarded)


@pytest.fixture
def own(guarded: Cluster, lists: AccessLists) -> Iterator[Topics]:
    """Topics of the test, with a few pages; what was granted on them and the groups is withdrawn afterwards."""
    topics = Topics(f"t{uuid.uuid4().hex[:12]}.")
    create(lists.admin, topics, Layout(partitions=2))
    publish(lists, topics, 0)
    yield topics
    lists.withdraw(needed(topics, GROUP))


def publish(lists: AccessLists, topics: Topics, start: int) -> None:
    """Publish twenty pages as the super user."""
    values = [json.dumps(page(number, article(number))).encode() for number in range(start, start + 20)]
    append(lists.admin, topics.pages, [Message(topics.pages, value) for value in values])


@pytest.fixture
def start(guarded: Cluster, own: Topics, tmp_path: Path) -> Iterator[Callable[[], Serving]]:
    """Start `serve` as the user; it is killed afterwards."""
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in guarded.client_options.items()))
    where = ("--bootstrap", guarded.bootstrap, "--prefix", own.prefix, "--group", GROUP)
    files = ("--properties", file, "--state", tmp_path / "state")
    started: list[Serving] = []

    def begin() -> Serving:
        started.append(Serving(tmp_path / f"log-{len(started)}", *where, *files, "--drain-s", "5"))
        return started[-1]

    yield begin
    for serving in started:
        serving.process.kill()
        serving.process.wait()


def decided(serving: Serving) -> int:
    """The number of pages with a verdict, from the metrics."""
    counts = re.findall(r'^twinsieve_pages_total\{verdict="\w+"\} (\S+)$', serving.get("/metrics")[1], re.MULTILINE)
    return int(sum(map(float, counts)))


def grant_for(topics: Topics, place: str) -> list[Grant]:
    """The grants that a row of the table below names."""
    _, name, operation = place.split(" ")
    whole = f"{topics.prefix}{name}"
    implied = {"READ", "WRITE"} & {operation} and {operation, "DESCRIBE"}
    return [
        grant for grant in needed(topics, GROUP) if grant.name == whole and grant.operation in (implied or {operation})
    ]


def last_line(serving: Serving) -> str:
    """What the service says at its end; it has no traceback before.

    The client's library logs one of its own where a connection is closed while its selector waits for it.
    """
    lines = [line for line in serving.log.read_text().splitlines() if '"logger":"kafka.' not in line]
    assert "Traceback" not in "".join(lines)
    return lines[-1]


REFUSALS = [
    (f"GROUP {GROUP} READ", f"Read on the group PREFIX{GROUP}", f"--operation Read --group PREFIX{GROUP}"),
    (
        f"GROUP {GROUP}.decide READ",
        f"Read on the group PREFIX{GROUP}.decide",
        f"--operation Read --group PREFIX{GROUP}.decide",
    ),
    (f"TRANSACTIONAL_ID {GROUP}. WRITE", "Write and Describe on the transactional id", "--operation Write"),
    ("TOPIC pages READ", "Read on the topic PREFIXpages", "--operation Read --topic PREFIXpages"),
    ("TOPIC fingerprints READ", "Read on the topic PREFIXfingerprints", "--operation Read --topic"),
    ("TOPIC fingerprints WRITE", "Write on the topic PREFIXfingerprints", "--operation Write --topic"),
    ("TOPIC dedup.offsets READ", "Read on the topic PREFIXdedup.offsets", "--topic PREFIXdedup.offsets"),
    ("TOPIC verdicts WRITE", "Write on the topic PREFIXverdicts", "--operation Write --topic PREFIXverdicts"),
    ("TOPIC pages.unique WRITE", "Write on the topic PREFIXpages.unique", "--topic PREFIXpages.unique"),
]


ALWAYS = {"TOPIC verdicts WRITE"}
"""In `make test`; all are in `make test-all`, since each starts a service, some seconds."""


def rows(rows: Iterable[tuple[str, ...]]) -> list[ParameterSet]:
    """Return rows as parameters, those beyond one of each kind marked as long."""
    return [pytest.param(*row, id=row[0], marks=[] if row[0] in ALWAYS else pytest.mark.long) for row in rows]


@pytest.mark.parametrize(("place", "what", "command"), rows(REFUSALS))
def test_a_service_that_is_refused_ends_with_what_to_grant(
    lists: AccessLists, own: Topics, start: Callable[[], Serving], place: str, what: str, command: str
) -> None:
    """Group, transactional id, or topic: exit code 1, and one line with the resource and the operation."""
    missing = grant_for(own, place)
    assert missing
    keep_describe = [grant for grant in missing if grant.operation == "DESCRIBE" and grant.kind == "TOPIC"]
    lists.grant(grant for grant in needed(own, GROUP) if grant not in missing or grant in keep_describe)
    serving = start()
    assert serving.process.wait(HANG_S) == FAILED
    line = last_line(serving)
    assert what.replace("PREFIX", own.prefix) in line
    assert "kafka-acls.sh --add" in line
    assert command.replace("PREFIX", own.prefix) in line


def test_a_topic_that_may_not_be_seen_is_not_called_missing(
    lists: AccessLists, own: Topics, start: Callable[[], Serving]
) -> None:
    """Without Describe the brokers say nothing of a topic; it must not be created a second time."""
    hidden = [grant for grant in needed(own, GROUP) if grant.name == own.verdicts]
    lists.grant(grant for grant in needed(own, GROUP) if grant not in hidden)
    serving = start()
    assert serving.process.wait(HANG_S) == FAILED
    assert f"Describe on the topic {own.verdicts}" in last_line(serving)
    assert "topics create" not in last_line(serving)


@pytest.mark.long
@pytest.mark.parametrize(
    "place",
    rows(
        (place,)
        for place in (
            f"GROUP {GROUP} READ",
            f"TRANSACTIONAL_ID {GROUP}. WRITE",
            "TOPIC pages READ",
            "TOPIC fingerprints WRITE",
            "TOPIC verdicts WRITE",
        )
    ),
)
def test_a_right_is_withdrawn_while_the_service_runs_and_given_back(
    lists: AccessLists, own: Topics, start: Callable[[], Serving], place: str
) -> None:
    """The service ends with what to grant; started again with the right, it answers each page once."""
    lists.grant(needed(own, GROUP))
    serving = start()
    serving.wait_for(lambda: decided(serving) == 20)
    missing = [grant for grant in grant_for(own, place) if grant.operation != "DESCRIBE"]
    lists.withdraw(missing)
    publish(lists, own, 20)
    assert serving.process.wait(HANG_S) == FAILED
    assert "kafka-acls.sh --add" in last_line(serving)
    lists.grant(missing)
    again = start()
    with_reader = PartitionReader(lists.admin, fetch_bytes=1 << 20, timeout_s=HANG_S)
    try:
        again.wait_for(lambda: verdicts(with_reader, own) >= 40)
        assert verdicts(with_reader, own) == 40
    finally:
        with_reader.close()


def verdicts(reader: PartitionReader, topics: Topics) -> int:
    """The number of verdicts that were written and committed."""
    ends = reader.ends(reader.partitions_of(topics.verdicts))
    reader.assign(dict.fromkeys(ends, 0))
    return sum(len(records) for records in reader.read(ends))


@pytest.fixture
def user(guarded: Cluster) -> Connection:
    """The connection of the service's user."""
    return Connection(guarded.bootstrap, guarded.client_options)


def test_a_refused_group_does_not_look_as_if_it_had_committed_nothing(
    lists: AccessLists, own: Topics, user: Connection
) -> None:
    """Neither does a refused topic: both raise, and say what to grant."""
    with pytest.raises(NotAuthorisedError, match=rf"--operation Read --topic {own.pages}"):
        committed_offsets(user, GROUP, own.pages)
    lists.grant([Grant("TOPIC", own.pages, "DESCRIBE")])
    with pytest.raises(NotAuthorisedError, match=rf"--operation Read --group {GROUP}"):
        committed_offsets(user, GROUP, own.pages)
    lists.grant([Grant("GROUP", GROUP, "READ"), Grant("TOPIC", own.pages, "READ")])
    assert committed_offsets(user, GROUP, own.pages) == {}


def test_readers_that_are_refused_raise(lists: AccessLists, own: Topics, user: Connection) -> None:
    """A reader without a group, and the log's."""
    reader = PartitionReader(user, fetch_bytes=1 << 20, timeout_s=HANG_S)
    with pytest.raises(NotAuthorisedError, match=rf"Read on the topic {own.pages}"):
        reader.partitions_of(own.pages)
    reader.close()
    log = LogConsumer(user, own.fingerprints)
    with pytest.raises(NotAuthorisedError, match=rf"Read on the topic {own.fingerprints}"):
        log.end()
    log.close()
