"""The clients in Python of docs/topics.md, as they are there."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dedup_service.runtime.kafka.topics import Topics
from tests.integration.conftest import Broker
from tests.integration.serving import Serving

pytestmark = [pytest.mark.slow, pytest.mark.broker]

TEXT = (Path(__file__).parents[2] / "docs/topics.md").read_text("utf-8")


class StoredError(Exception):
    """The page is stored: the reader has done enough."""


def test_a_page_goes_from_the_producer_to_the_consumer(
    broker: Broker, topics: Topics, serve: Callable[..., Serving]
) -> None:
    """With nothing but names of brokers and topics put in."""

    def run(title: str, **names: object) -> None:
        (code,) = re.findall(rf'```python title="{title}.*?"\n(.*?)^```', TEXT, re.DOTALL | re.MULTILINE)
        for documented, ours in (("kafka:9092", broker.bootstrap), ('"pages', f'"{topics.prefix}pages')):
            assert documented in code
            code = code.replace(documented, ours)
        exec(code, names)

    stored: list[tuple[dict[str, str], str]] = []

    def store(page: dict[str, str], verdict: str) -> None:
        stored.append((page, verdict))
        raise StoredError

    serve()
    run("producer.py")
    with pytest.raises(StoredError):
        run("consumer.py", store=store)
    ((page, verdict),) = stored
    assert (page["url"], verdict) == ("https://a.example/2", "unique")
