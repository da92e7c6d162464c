"""A service whose log goes on from a base, on a real broker: verdicts as of one run, and the base unchanged."""

import json
import random
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.page import Page
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.shards.shard import ShardNumber
from dedup_service.core.verdict import Verdict
from dedup_service.interfaces.cli.main import run
from dedup_service.interfaces.http.probes import Health
from dedup_service.runtime.embedded.state import State, StateSettings
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.messages.verdict import read_verdict
from dedup_service.runtime.kafka.service import DECIDE, FINGERPRINT, SHARD, Service, ServiceSettings
from dedup_service.runtime.kafka.state.local_state import PAGES_FOLDER
from dedup_service.runtime.kafka.state.mounted_bases import GivenBases
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from dedup_service.runtime.resources import build_fingerprinter
from deploy.kafka.readiness import wait_until
from tests.chaos.reading import read_all
from tests.crawls.texts import Writer
from tests.hangs import HANG_S
from tests.integration.conftest import Broker
from tests.integration.kafka.test_service import Progress, running, settings
from tests.runtime.embedded.test_bases import digests, said

pytestmark = pytest.mark.slow

WINDOW = 64
"""So few that most pages of the base are settled; no message of the log has more."""

BASE, NEW = 400, 150


def pages_of(count: int) -> list[Page]:
    """Stories, copies on other sites, and visits of known addresses with the same text or another one."""
    rng = random.Random(5)
    writer, pages = Writer(rng), list[Page]()
    for number in range(count):
        url, text = f"https://site{number % 7}.example/{number}", writer.text(rng.randint(300, 500))
        if pages and rng.random() < 0.5:
            text = rng.choice(pages).text
        if pages and rng.random() < 0.2:
            url = rng.choice(pages).url
        pages.append(Page(url=url, canonical_url=url, id=f"{number}", title="", text=text))
    return pages


def decided(folder: Path, pages: Sequence[Page]) -> list[Verdict]:
    """The verdicts of one run, in a state that is closed then."""
    folder.mkdir()
    with closing(reopened(folder)) as state:
        return state.decide([(prepared, None) for prepared in build_fingerprinter().prepare_all(pages)])


def reopened(folder: Path) -> State:
    """A state, open for writing."""
    fingerprinter = build_fingerprinter()
    setting = StateSettings(IndexLayout(slots=8, window=WINDOW))
    return State(folder, fingerprinter.space_id, fingerprinter.space.to_dict(), None, setting)


def publish(broker: Broker, topics: Topics, pages: Sequence[Page]) -> None:
    """Put pages into one partition of `pages`, so that the log has them in their order; some at a time."""
    values = [json.dumps({"id": page.id, "url": page.url, "text": page.text}).encode() for page in pages]
    append(broker.connection, topics.pages, [Message(topics.pages, value, b"", partition=0) for value in values])


def verdicts(broker: Broker, topics: Topics) -> list[Verdict]:
    """The verdicts that were written, in the order of the log."""
    found = [read_verdict(record.value)[0] for record in read_all(broker.bootstrap, [topics.verdicts])[topics.verdicts]]
    return sorted(found, key=lambda verdict: verdict.sequence)


def processes(chosen: ServiceSettings, of: int | None) -> list[ServiceSettings]:
    """One process that has all steps, or one for each step and shard."""
    if of is None:
        return [chosen]
    shards = [
        replace(chosen, state=chosen.state / f"{index}", steps=frozenset({SHARD}), shard=ShardNumber(index, of))
        for index in range(1, of + 1)
    ]
    resolver = replace(chosen, state=chosen.state / "resolver", steps=frozenset({DECIDE}), resolved_shards=of)
    others = replace(chosen, state=chosen.state / "fingerprint", steps=frozenset({FINGERPRINT}), bases={})
    return [resolver, others, *shards]


@contextmanager
def all_running(chosen: Sequence[ServiceSettings]) -> Iterator[Progress]:
    """Run all processes until the block ends."""
    progress = Progress()
    with ExitStack() as stack:
        for one in chosen:
            stack.enter_context(running(one, progress))
        yield progress


@pytest.mark.parametrize("shards", [None, pytest.param(2, marks=pytest.mark.long)])
def test_verdicts_are_those_of_one_run_over_base_and_log(
    broker: Broker, topics: Topics, tmp_path: Path, shards: int | None
) -> None:
    """Through a restart, and a start with lost snapshots, in one process or in shards; the base is not changed."""
    pages = pages_of(BASE + NEW)
    if shards is not None:
        create(broker.connection, topics, Layout(partitions=4, slots=8))
    decided(tmp_path / "corpus", pages[:BASE])
    expected = decided(tmp_path / "oracle", pages)[BASE:]
    before, corpus = digests(tmp_path / "corpus"), str(tmp_path / "corpus")
    where = ("--bootstrap", broker.bootstrap, "--prefix", topics.prefix, "--group", "g")
    for _ in range(2):  # as of a command that was interrupted
        assert run(["policy", "set", "--base", f"corpus={corpus}", *where]) == 0
    assert run(["policy", "set", "--base", f"corpus={tmp_path / 'oracle'}", *where]) == 2
    chosen = processes(settings(broker, topics, tmp_path / "own", bases={"corpus": corpus}), shards)
    for part in range(3):
        if part == 2:
            for one in chosen:
                shutil.rmtree(one.state / PAGES_FOLDER, ignore_errors=True)
        step = NEW // 3
        with all_running(chosen) as progress:
            publish(broker, topics, pages[BASE + part * step : BASE + (part + 1) * step])
            progress.wait_for(lambda: progress.done >= step)  # noqa: B023 - of this turn
    found = verdicts(broker, topics)
    assert said(found) == said(expected)
    in_base = {page.id for page in pages[:BASE]}
    for verdict in found:
        assert (verdict.duplicate_of_base == "corpus") == (verdict.duplicate_of in in_base)
    assert len({verdict.duplicate_of_base for verdict in found}) == 2
    assert digests(tmp_path / "corpus") == before


def test_a_take_down_in_the_base_reaches_a_service_that_runs(broker: Broker, topics: Topics, tmp_path: Path) -> None:
    """The log loses the page, so its next copy is unique, as its visit is; another start goes on without it."""
    pages = list({page.url: page for page in {page.text: page for page in pages_of(200)}.values()}.values())
    decided(tmp_path / "corpus", pages)
    gone, other = pages[3], pages[5]

    def copies(host: str) -> list[Page]:
        return [replace(one, id=f"{host}{one.id}", url=f"https://{host}.example/{one.id}") for one in (gone, other)]

    own = settings(broker, topics, tmp_path / "own", bases={"corpus": str(tmp_path / "corpus")})
    with running(own, progress := Progress()) as service:
        publish(broker, topics, copies("a"))
        progress.wait_for(lambda: progress.done >= 2)
        with closing(reopened(tmp_path / "corpus")) as state:
            sequence = state.retract(gone.url).sequence
        assert wait_until(lambda: not service.ask(lambda replica: replica.holds(sequence)), timeout_s=HANG_S)
        publish(broker, topics, copies("b"))
        progress.wait_for(lambda: progress.done >= 4)
    with running(own, progress := Progress()):
        publish(broker, topics, [gone, *copies("c")])
        progress.wait_for(lambda: progress.done >= 3)
    found = [(verdict.id, verdict.duplicate_of) for verdict in verdicts(broker, topics)]
    assert found == [
        (f"a{gone.id}", gone.id),
        (f"a{other.id}", other.id),
        (f"b{gone.id}", None),
        (f"b{other.id}", other.id),
        (gone.id, f"b{gone.id}"),
        (f"c{gone.id}", f"b{gone.id}"),
        (f"c{other.id}", other.id),
    ]


@pytest.mark.long
def test_a_process_without_the_base_says_so_and_decides_nothing(broker: Broker, topics: Topics, tmp_path: Path) -> None:
    """One without it and one with another; it goes on when the base is there. No later process is given others."""
    pages = pages_of(60)
    decided(tmp_path / "corpus", pages[:40])
    decided(tmp_path / "other", pages[20:40])
    mine, other = ({"corpus": str(tmp_path / name)} for name in ("corpus", "other"))
    with running(settings(broker, topics, tmp_path / "own", bases=mine), progress := Progress()):
        publish(broker, topics, pages[40:50])
        progress.wait_for(lambda: progress.done >= 10)
    for bases, problem in (({}, "base corpus: not given"), (other, "base corpus: state ")):
        with running(settings(broker, topics, tmp_path / "own", bases=bases), Progress()) as service:
            assert wait_until(lambda: bool(service.status().waits_for), timeout_s=HANG_S)
            health = Health(service.status)
            assert health.ready().text.startswith(problem)
            assert (health.ready().good, health.live().good) == (False, True)
            publish(broker, topics, pages[50:55])
    for steps in ({FINGERPRINT, DECIDE}, {FINGERPRINT}):
        wrong = settings(broker, topics, tmp_path / "own", bases=mine | {"more": "x"}, steps=frozenset(steps))
        with pytest.raises(ConfigurationError, match="cannot be given more any later: leave more out of --base"):
            Service(wrong).run(threading.Event())
    everywhere = GivenBases(mine | {"more": "x"}, given_by="a variable")
    ignoring = settings(broker, topics, tmp_path / "own", bases=everywhere, steps=frozenset({FINGERPRINT}))
    with running(ignoring, Progress()) as service:
        assert wait_until(lambda: bool(service.status().steps), timeout_s=HANG_S)
    assert len(verdicts(broker, topics)) == 10
    mount = tmp_path / "mount"
    moved = settings(broker, topics, tmp_path / "own", bases={"corpus": str(mount)})
    with running(moved, progress := Progress()) as service:
        assert wait_until(lambda: "is no folder" in service.status().waits_for, timeout_s=HANG_S)
        shutil.copytree(tmp_path / "corpus", mount)
        progress.wait_for(lambda: progress.done >= 10)
        assert service.status().waits_for == ""
    assert len(verdicts(broker, topics)) == 20
