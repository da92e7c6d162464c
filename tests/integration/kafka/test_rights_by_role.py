"""The rights of SECURITY.md, role by role: the real commands of a role run with them, and need each of them."""

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer

from dedup_service.interfaces.cli.main import run
from dedup_service.runtime.kafka.client.admin import administration
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition, connect
from dedup_service.runtime.kafka.client.errors import NotAuthorisedError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.topics import Layout, OutputMode, Topics, create
from deploy.kafka import Cluster
from deploy.kafka.access_lists import DENY_BY_DEFAULT, AccessLists, Grant
from deploy.kafka.readiness import wait_until
from tests.documented_rights import granted_to
from tests.hangs import HANG_S
from tests.integration.conftest import Broker
from tests.integration.serving import Serving
from tests.integration.test_replay import logged, published
from tests.interfaces.cli.running import article, page, write_lines

pytestmark = [pytest.mark.long, pytest.mark.broker]

URLS = tuple(f"https://a.example/{number}" for number in range(3))
GROUP = "twinsieve"

Call = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Cluster]:
    """A broker whose users may do nothing until it is granted."""
    with Cluster(sasl=True, settings=DENY_BY_DEFAULT) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def lists(guarded: Cluster) -> AccessLists:
    """Its access control lists."""
    return AccessLists(guarded)


@pytest.fixture(scope="module")
def user(guarded: Cluster) -> Connection:
    """The connection of the user, who has one role after the other."""
    return Connection(guarded.bootstrap, guarded.client_options)


@pytest.fixture(scope="module")
def where(guarded: Cluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The options of a command that the user runs."""
    file = tmp_path_factory.mktemp("user") / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in guarded.client_options.items()))
    return "--bootstrap", guarded.bootstrap, "--properties", str(file)


@pytest.fixture
def call(where: tuple[str, ...], capfd: pytest.CaptureFixture[str]) -> Call:
    """Run a command as the user on a set; returns the exit code and what it says on the error stream."""

    def called(topics: Topics, *arguments: str) -> tuple[int, str]:
        code = run([*arguments, *where, "--prefix", topics.prefix])
        return code, capfd.readouterr().err

    return called


def new_set() -> Topics:
    """Names that no other test has."""
    return Topics(f"r{uuid.uuid4().hex[:8]}.")


@contextmanager
def allowed(lists: AccessLists, grants: Iterable[Grant]) -> Iterator[None]:
    """Grant the user rights for a while; the broker knows them in the block, and knows of none after it."""
    grants = set(grants)
    lists.grant(grants)
    try:
        assert wait_until(lambda: lists.count() == len(grants), timeout_s=HANG_S)
        yield
    finally:
        lists.withdraw(grants)
        assert wait_until(lambda: lists.count() == 0, timeout_s=HANG_S)


@pytest.fixture(scope="module")
def served(
    lists: AccessLists, user: Connection, where: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> Topics:
    """A set with pages that a crawler has published and a service has answered, each with the rights of its role."""
    topics, folder = new_set(), tmp_path_factory.mktemp("served")
    create(lists.admin, topics, Layout(partitions=1))
    with allowed(lists, granted_to("crawler", topics.prefix)):
        values = [json.dumps({**page(number, article(number)), "url": url}) for number, url in enumerate(URLS)]
        append(user, topics.pages, [Message(topics.pages, value.encode()) for value in values])
    with allowed(lists, granted_to("twinsieve", topics.prefix)):
        serving = Serving(folder / "log", *where, "--prefix", topics.prefix, "--state", folder / "state")
        try:
            serving.wait_for(lambda: count_of(lists.admin, topics.verdicts) >= len(URLS))
        finally:
            serving.process.kill()
            serving.process.wait()
    return topics


def count_of(connection: Connection, topic: str) -> int:
    """The number of committed records in partition 0."""
    with closing(LogConsumer(connection, topic)) as reader:
        return sum(len(batch) for batch in reader.read_to_end())


OPERATION = [
    ("policy", "show"),
    ("policy", "set", "--profile", "balanced:2"),
    ("retract", URLS[0]),
    ("correct", URLS[1], "--not-duplicate-of", URLS[2]),
    ("corrections",),
    ("dead-letters", "list"),
    ("why", URLS[1]),
    ("replay",),
    ("replay", "--from", "pages"),
]
PROBES = [("retract", URLS[0]), ("policy", "show"), ("replay", "--from", "pages"), ("dead-letters", "list")]
"""Together they need what all of the above need, and a refused one ends in a second."""


def test_replay_into_another_set(lists: AccessLists, served: Topics, call: Call) -> None:
    """The rights of operators and those for the new set. No page is retracted yet."""
    new = Topics(f"{served.prefix}new.")
    create(lists.admin, new, Layout(partitions=1))
    with allowed(lists, granted_to("operator", served.prefix) | granted_to("replayer", served.prefix)):
        assert call(served, "replay", "--from", "pages", "--to-prefix", new.prefix)[0] == 0
    assert count_of(lists.admin, new.verdicts) == len(URLS)


@pytest.mark.parametrize("command", OPERATION, ids=" ".join)
def test_an_operator_may_do_what_operators_do(
    lists: AccessLists, served: Topics, call: Call, command: tuple[str, ...]
) -> None:
    """Each command of theirs, with the rights of the role and no others."""
    with allowed(lists, granted_to("operator", served.prefix)):
        assert call(served, *command)[0] == 0


def test_the_step_of_canonical_pages_needs_no_more_than_its_rights(
    guarded: Cluster, lists: AccessLists, where: tuple[str, ...], tmp_path: Path
) -> None:
    """It restores its state and writes to its topic, as a user without the rights of other steps."""
    topics, inside = new_set(), Broker(guarded.inner_bootstrap)
    create(lists.admin, topics, Layout(partitions=4))
    logged(inside, topics, published(inside, topics))
    with allowed(lists, granted_to("canonical", topics.prefix)):
        arguments = ("--prefix", topics.prefix, "--steps", "canonical", "--state", tmp_path / "state")
        serving = Serving(tmp_path / "log", *where, *arguments)
        try:
            serving.wait_for(lambda: count_of(lists.admin, topics.canonical) >= 19)
        finally:
            serving.process.kill()
            serving.process.wait()


def test_a_store_reads_what_it_stores(lists: AccessLists, served: Topics, user: Connection) -> None:
    """In its group, pages and verdicts."""
    with allowed(lists, granted_to("store", served.prefix)):
        for topic in (served.unique, served.verdicts):
            group = f"{served.prefix}store"
            with closing(
                connect(KafkaConsumer, user, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False)
            ) as reader:
                reader.subscribe([topic])
                assert wait_until(lambda reader=reader: bool(reader.poll(1000)), timeout_s=HANG_S)
                reader.commit()


def test_an_admin_may_create_topics(lists: AccessLists, call: Call) -> None:
    """And look at them, create them again, and have their transactions looked at."""
    topics = new_set()
    with allowed(lists, granted_to("admin", topics.prefix)):
        for command in (("create", "--partitions", "1"), ("create",), ("check",)):
            assert call(topics, "topics", *command)[0] == 0


def test_an_admin_may_repair_transactions(lists: AccessLists, served: Topics, call: Call, user: Connection) -> None:
    """A transaction is open, so the log of the coordinators is read; a marker is written as a repair writes it."""
    with allowed(lists, granted_to("admin", served.prefix)), open_transaction(lists.admin, served):
        assert call(served, "topics", "repair-transactions", "--dry-run")[0] == 0
        assert call(served, "topics", "repair-transactions")[0] == 0
        abort_all(user, served)


@contextmanager
def open_transaction(admin: Connection, topics: Topics) -> Iterator[None]:
    """A transaction of a crawler is open on `pages`."""
    with closing(connect(KafkaProducer, admin, transactional_id=f"{topics.prefix}open")) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topics.pages, b"no page", partition=0).get(30)
        yield
        producer.abort_transaction()


def abort_all(connection: Connection, topics: Topics) -> None:
    """End the transactions on `pages` as `repair-transactions` does with those that hang."""
    with administration(connection) as admin:
        for transaction in admin.open_transactions([TopicPartition(topics.pages, 0)]):
            producer = transaction.producer_id, transaction.epoch
            admin.write_marker(transaction.partition, producer, 0, committed=False)


def without_each(rights: set[Grant]) -> Iterator[tuple[Grant, set[Grant]]]:
    """Each right, and the others. *Describe* that *Read* or *Write* on the same resource implies is no right."""
    kept = {
        grant
        for grant in rights
        if grant.operation != "DESCRIBE"
        or not any(other.name == grant.name and other.operation in {"READ", "WRITE"} for other in rights)
    }
    for grant in sorted(kept, key=str):
        yield grant, kept - {grant}


def is_refused(call: Call, topics: Topics, commands: Sequence[tuple[str, ...]]) -> bool:
    """Whether a command ends with what to grant."""
    return any(code == 1 and "grant the user" in said for code, said in (call(topics, *one) for one in commands))


@pytest.mark.long
def test_an_operator_needs_every_right(lists: AccessLists, served: Topics, call: Call) -> None:
    """Without any one of them, some command is refused, and says what to grant."""
    for right, others in without_each(granted_to("operator", served.prefix)):
        with allowed(lists, others):
            assert is_refused(call, served, PROBES), right


@pytest.mark.long
def test_an_admin_needs_every_right(lists: AccessLists, served: Topics, call: Call, user: Connection) -> None:
    """To create a set, to find that it exists, or to repair its transactions."""
    rights = granted_to("admin", served.prefix)
    for right, others in without_each(rights):
        with open_transaction(lists.admin, served), allowed(lists, others):
            if right.operation == "ALTER":
                with pytest.raises(NotAuthorisedError):
                    abort_all(user, served)
            elif right.operation == "CREATE":
                missing = new_set()
                seen = {grant for grant in granted_to("admin", missing.prefix) if grant.kind == "TOPIC"}
                lists.grant(seen)
                assert call(missing, "topics", "create")[0] == 1
                lists.withdraw(seen)
            else:
                commands = [("topics", "create"), ("topics", "repair-transactions", "--dry-run")]
                assert is_refused(call, served, commands), right


def test_settings_that_may_not_be_seen_are_not_called_wrong(lists: AccessLists, served: Topics, call: Call) -> None:
    """The client drops that refusal: without *DescribeConfigs* a topic seemed to have no settings."""
    rights = granted_to("operator", served.prefix)
    with allowed(lists, {grant for grant in rights if grant.operation != "DESCRIBE_CONFIGS"}):
        code, said = call(served, "retract", URLS[0])
    assert code == 1
    topics = sorted(served.needed_for(OutputMode.VERDICTS))  # a retraction is passed on to no topic of pages
    assert f"DescribeConfigs on the topic {', '.join(topics)}: kafka-acls.sh --add" in said
    assert said.endswith(f"--operation DescribeConfigs {' '.join(f'--topic {topic}' for topic in topics)}\n")


@pytest.mark.parametrize("outputs", ["none", "verdicts", "all"])
def test_a_backfiller_may_backfill(
    lists: AccessLists, served: Topics, call: Call, tmp_path: Path, outputs: str
) -> None:
    """With the rights of that role alone; without one of them, the command says what to grant."""
    rights, file = granted_to("backfiller", served.prefix), write_lines(tmp_path / "pages.jsonl", [page(9, article(9))])
    command = "backfill", str(file), "--name", outputs, "--outputs", outputs, "--processes", "1", "--share", "1"
    with allowed(lists, rights):
        assert call(served, *command)[0] == 0
    with allowed(lists, {grant for grant in rights if grant.kind != "TRANSACTIONAL_ID"}):
        assert is_refused(call, served, [command])
