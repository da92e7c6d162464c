"""`why` and corrections in the service: over HTTP from a running process, and from the log alone."""

import json
import multiprocessing
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dedup_service.core.log_records import PageRecord, Source
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.interfaces.cli.main import run
from dedup_service.interfaces.http.server import Address
from dedup_service.interfaces.http.service import Addresses, ServedService
from dedup_service.runtime.events import BatchEvent, Observer
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.explain.page_lookup import PageTextLookup
from dedup_service.runtime.kafka.messages.headers import page_key
from dedup_service.runtime.kafka.messages.log_record import log_message
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.kafka.service import ServiceSettings
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.workers.page_reader import PageReader
from dedup_service.runtime.workers.preparation import BadRecord, prepare_record
from tests.hangs import HANG_S, wait_until
from tests.integration.conftest import Broker
from tests.interfaces.cli.running import article, page

pytestmark = pytest.mark.slow

TEXT = ". ".join(article(at, 12) for at in range(20))
Ask = Callable[..., tuple[int, Any]]


class Decided(Observer):
    """An observer that waits until a number of pages is decided."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = threading.Condition()

    def batch(self, event: BatchEvent) -> None:
        with self._changed:
            self.count += event.records if event.step == "decide" else 0
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        """Wait until `count` pages are decided."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.count >= count, HANG_S), self.count


@pytest.fixture
def decided() -> Decided:
    """The observer of the service."""
    return Decided()


@pytest.fixture
def ask(broker: Broker, topics: Topics, tmp_path: Path, decided: Decided) -> Iterator[Ask]:
    """Return a function that sends a request to a service that runs on the topics of the test."""
    with asking(broker, topics, tmp_path / "s", decided) as call:
        yield call


@contextmanager
def asking(broker: Broker, topics: Topics, state: Path, decided: Decided) -> Iterator[Ask]:
    """Run a service on the topics of the test; yield a function that sends it a request."""
    settings = ServiceSettings(
        connection=broker.connection, state=state, group=f"{topics.prefix}g", prefix=topics.prefix
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = Address("127.0.0.1", free.getsockname()[1])
    addresses = Addresses(http=None, dashboard=address, token=None)
    served, stop = ServedService(settings, [decided], addresses), threading.Event()
    thread = threading.Thread(target=served.service.run, args=(stop,))
    with ExitStack() as stack:
        served.serve(stack)
        thread.start()

        def call(path: str, body: Any = None) -> tuple[int, Any]:
            data = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(
                f"http://{address}{path}", data=data, headers={"content-type": "application/json"}
            )
            try:
                with urllib.request.urlopen(request, timeout=HANG_S) as response:
                    return response.status, json.load(response)
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, json.load(error)

        try:
            yield call
        finally:
            stop.set()
            thread.join(HANG_S)


def publish(broker: Broker, topics: Topics, *pages: dict[str, object]) -> None:
    """Append pages to `pages`, keyed as producers key them."""
    messages = [Message(topics.pages, json.dumps(page).encode(), page_key(str(page["url"]))) for page in pages]
    append(broker.connection, topics.pages, messages)


def test_a_page_of_before_a_restart_is_not_denied(
    broker: Broker, topics: Topics, tmp_path: Path, decided: Decided
) -> None:
    """A duplicate is found by its address while the process that decided it runs; then a command finds it."""
    with asking(broker, topics, tmp_path / "s", decided) as ask:
        publish(broker, topics, page(1, TEXT))
        decided.wait_for(1)
        publish(broker, topics, page(2, TEXT + " In 2024."))
        decided.wait_for(2)
        assert ask("/api/why?url=https://news.example/2")[0] == 200
    with asking(broker, topics, tmp_path / "s", decided) as ask:
        answers: list[tuple[int, Any]] = []

        def answered() -> bool:
            answers.append(ask("/api/why?url=https://news.example/2"))
            return answers[-1][0] != 503

        wait_until(answered, lambda: answers[-1])
        status, answer = answers[-1]
        assert (status, "not in the log" in answer["error"]) == (404, False)
        assert "of those decided since it started" in answer["error"]
        assert f"`twinsieve why URL --bootstrap {broker.bootstrap} --prefix {topics.prefix}`" in answer["error"]


def test_why_and_a_correction(
    broker: Broker, topics: Topics, ask: Ask, decided: Decided, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The service explains a duplicate and accepts a correction; the log alone explains the same."""
    publish(broker, topics, page(1, TEXT))
    decided.wait_for(1)
    publish(broker, topics, page(2, TEXT + " In 2024."), page(3))
    decided.wait_for(3)

    status, values = ask("/api/why?url=https://news.example/2")
    assert status == 200
    verdict, match = values["verdict"], values["match"]
    assert (verdict["kind"], verdict["of_url"]) == ("duplicate", "https://news.example/1")
    assert match["row"] == verdict["reason"]
    assert match["numbers"] == {"one": ["2024"], "other": []}
    assert (values["page"]["kept"], match["other"]["kept"]) == (False, True)
    kept = ask("/api/why?url=https://news.example/3")[1]
    assert (kept["verdict"]["kind"], len(kept["neighbours"])) == ("unique", 1)
    assert ask("/api/why?url=https://news.example/99")[0] == 404
    where = ("--bootstrap", broker.bootstrap, "--prefix", topics.prefix)
    assert run(["why", "https://news.example/2", *where, "--json"]) == 0
    alone = json.loads(capfd.readouterr().out)
    assert {**alone, "policy": None, "has_groups": False} == {**values, "policy": None}

    correction = {"url": values["page"]["sequence"], "of": match["other"]["url"], "duplicate": False, "reason": "two"}
    status, answer = ask("/api/corrections", correction)
    assert status == 201
    assert (answer["correction"]["url"], answer["correction"]["by"]) == ("https://news.example/2", "127.0.0.1")
    assert ask("/api/corrections", {**correction, "of": "https://news.example/99"})[0] == 404
    publish(broker, topics, page(2, TEXT + " In 2024."))
    decided.wait_for(4)
    again = ask("/api/why?url=https://news.example/2")[1]
    assert again["verdict"]["kind"] == "unique"
    assert [row["reason"] for row in again["corrections"]] == ["two"]
    assert ask("/api/corrections")[1]["rows"] == [answer["correction"]]

    pairs, pages = tmp_path / "pairs.jsonl", tmp_path / "pages.jsonl"
    assert run(["corrections", *where, "--json", "--export", str(pairs), "--pages", str(pages)]) == 0
    listed = json.loads(capfd.readouterr().out)
    assert {**listed, "at": None} == {**answer["correction"], "at": None}
    assert (json.loads(pairs.read_text())["label"], len(pages.read_text().splitlines())) == ("not", 2)

    publish(broker, topics, page(1, TEXT))
    decided.wait_for(5)
    assert run(["why", "https://news.example/1", *where, "--json"]) == 0
    for unchanged in (ask("/api/why?url=https://news.example/1")[1], json.loads(capfd.readouterr().out)):
        assert (unchanged["verdict"]["kind"], unchanged["first_verdict"]["kind"]) == ("unchanged", "unique")


def test_a_text_is_of_the_page_that_the_log_names(broker: Broker, topics: Topics) -> None:
    """If `pages` was deleted and created again, another page is at the same offset: no text is shown for it."""
    space_id = build_fingerprinter().space_id
    value, other = (json.dumps(page(number)).encode() for number in (1, 2))
    append(broker.connection, topics.pages, [Message(topics.pages, each, partition=0) for each in (value, other)])
    answer = prepare_record(SpaceOptions(), PageMessage(topics.pages, 0, 0, value))
    assert not isinstance(answer, BadRecord)
    records = [PageRecord(Source(topics.pages, 0, offset), answer, space_id) for offset in (0, 1)]
    append(broker.connection, topics.fingerprints, [log_message(topics.fingerprints, record) for record in records])
    with closing(PageReader()) as pages, closing(PageTextLookup(broker.connection, topics, pages)) as texts:
        assert texts.text_at(0) == article(1)
        assert texts.text_at(1) is None


def test_a_page_that_could_not_be_judged_is_not_read_again(broker: Broker, topics: Topics) -> None:
    """What killed a worker would kill the next one: there is no text, and no worker is started for it."""
    value = json.dumps(page(1)).encode()
    append(broker.connection, topics.pages, [Message(topics.pages, value, partition=0)])
    answer = prepare_record(SpaceOptions(), PageMessage(topics.pages, 0, 0, value))
    assert not isinstance(answer, BadRecord)
    reason = "not judged: the worker process died over this page, twice"
    unjudged = PageRecord(Source(topics.pages, 0, 0), replace(answer, reason=reason), build_fingerprinter().space_id)
    append(broker.connection, topics.fingerprints, [log_message(topics.fingerprints, unjudged)])
    before = set(multiprocessing.active_children())
    with closing(PageReader()) as pages, closing(PageTextLookup(broker.connection, topics, pages)) as texts:
        assert texts.text_at(0) is None
        assert set(multiprocessing.active_children()) == before


def test_a_page_beyond_the_limits_has_no_text(broker: Broker, topics: Topics) -> None:
    """It was judged by a faster machine, say: the process that explains it extracts nothing itself."""
    html = "<html><body>" + "".join(f"<p>{article(at)}</p>" for at in range(4000)) + "</body></html>"
    value = json.dumps({"url": "https://news.example/1", "html": html}).encode()
    append(broker.connection, topics.pages, [Message(topics.pages, value, partition=0)])
    address = "https://news.example/1"
    judged = PreparedPage(Page(url=address, canonical_url=address, id=address), Fingerprint(), None)
    record = PageRecord(Source(topics.pages, 0, 0), judged, build_fingerprinter().space_id)
    append(broker.connection, topics.fingerprints, [log_message(topics.fingerprints, record)])
    with closing(PageReader(timeout_s=0.05)) as pages:
        assert PageTextLookup(broker.connection, topics, pages).text_at(0) is None
    with closing(PageReader()) as pages:
        assert PageTextLookup(broker.connection, topics, pages).text_at(0)
