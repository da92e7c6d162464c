"""`twinsieve dead-letters`: what a service has rejected is listed, corrected as text, and published again."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dedup_service.interfaces.cli.main import run
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.topics import Topics
from tests.chaos.reading import read_all
from tests.integration.conftest import Broker
from tests.integration.serving import Serving
from tests.interfaces.cli.running import article, page

pytestmark = [pytest.mark.slow, pytest.mark.broker]

WITHOUT_URL = json.dumps({"title": "Ferry", "text": article(1)}).encode()
MANY = tuple((f"h{number}", b"") for number in range(300))


def test_corrected_records_get_their_verdict(
    broker: Broker, topics: Topics, serve: Callable[..., Serving], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A line has the whole record; corrected, it is published with its key and headers, and decided as any page."""
    headers = (("from", b"feed"), ("raw", b"\xff"))
    sent = [
        Message(topics.pages, WITHOUT_URL, b"\xfe", headers),
        Message(topics.pages, b"\xff\xfe rubbish"),
        Message(topics.pages, json.dumps(page(2, article(2))).encode(), headers=MANY),
    ]
    append(broker.connection, topics.pages, sent)
    serving = serve()
    where = ("--bootstrap", broker.bootstrap, "--prefix", topics.prefix)
    serving.wait_for(lambda: 'twinsieve_rejected_records_total{step="decide"} 3.0' in serving.get("/metrics")[1])

    capfd.readouterr()
    assert run(["dead-letters", "list", *where]) == 0
    shown = capfd.readouterr().out
    assert len(shown.splitlines()) == 3
    assert f"published at {topics.pages}/" in shown
    assert "Object missing required field `url`" in shown
    assert run(["dead-letters", "list", "--json", *where]) == 0
    lines = capfd.readouterr().out.splitlines()

    (letter,) = (json.loads(line) for line in lines if "missing required" in line)
    assert letter["value"].encode() == WITHOUT_URL
    assert (letter["key"], letter["cut"]) == ({"base64": "/g=="}, False)
    assert letter["headers"] == [["from", "feed"], ["raw", {"base64": "/w=="}]]

    file = tmp_path / "letters.jsonl"
    file.write_text("\n".join([*lines, "no json"]).replace(r"\"title\"", r"\"url\": \"https://a.example/\", \"title\""))
    assert run(["dead-letters", "republish", str(file), *where]) == 3
    said = capfd.readouterr()
    assert said.out == f"1 published to {topics.pages}, 3 not\n"
    assert "not a page in JSON" in said.err
    assert "only a part of the record is here" in said.err
    assert "line 4 is not published: no line of `dead-letters list --json`" in said.err

    serving.wait_for(lambda: 'twinsieve_pages_total{verdict="unique"} 1.0' in serving.get("/metrics")[1])
    (unique,) = read_all(broker.bootstrap, [topics.unique])[topics.unique]
    assert unique.key == b"\xfe"
    assert dict(unique.headers)["raw"] == b"\xff"


def test_a_wrong_prefix_is_named(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    """Topics that do not exist are no empty list."""
    assert run(["dead-letters", "list", "--bootstrap", broker.bootstrap, "--prefix", "nowhere."]) == 2
    assert "there is no topic nowhere.pages.dlq" in capfd.readouterr().err
