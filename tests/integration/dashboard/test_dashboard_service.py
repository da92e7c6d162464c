"""The dashboard of the service behind a broker: the same page, about the whole log, with texts from `pages`."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.messages.headers import page_key
from dedup_service.runtime.kafka.topics import Topics
from tests.integration.conftest import Broker
from tests.integration.dashboard.browsing import Watched
from tests.integration.serving import Serving
from tests.interfaces.cli.running import article, page

pytestmark = pytest.mark.slow


def publish(broker: Broker, topics: Topics, numbers: range) -> None:
    """Pages that repeat each other twenty by twenty, keyed as producers key them."""
    pages = [page(number, article(number % 20)) for number in numbers]
    messages = [Message(topics.pages, json.dumps(at).encode(), page_key(str(at["url"]))) for at in pages]
    append(broker.connection, topics.pages, messages)


def test_a_log_is_watched_explained_and_corrected(
    broker: Broker, topics: Topics, serve: Callable[..., Serving], watch: Callable[..., Watched]
) -> None:
    """Rows come as pages are published; a duplicate is explained by the texts in `pages`, and a person knows better."""
    serving = serve()
    watched = watch(serving.url)
    seen = watched.page
    seen.goto("/")
    expect(seen.locator("#line")).to_have_text("connected")
    expect(seen.locator("#mode")).to_have_text("serve")
    publish(broker, topics, range(40))
    expect(seen.locator("[data-figure=pages]")).to_have_text("40")
    expect(seen.locator("[data-figure=duplicates]")).to_have_text("20")
    expect(seen.locator("#rows tbody tr")).to_have_count(20)
    expect(seen.locator("#lag tbody tr")).not_to_have_count(0)
    expect(seen.locator("#pool tbody tr")).to_have_count(1)
    expect(seen.locator("#about")).to_contain_text("Counts are of the whole log.")
    assert watched.axe() == []

    seen.locator("#rows tbody tr").first.get_by_role("link", name="Why").click()
    expect(seen.locator("[data-figure=verdict]")).to_have_text("duplicate")
    expect(seen.locator("#passages .passage")).not_to_have_count(0)
    expect(seen.locator("#features tbody tr")).not_to_have_count(0)
    seen.get_by_role("button", name="Not a duplicate").click()
    expect(seen.locator("#said")).to_contain_text("in force")
    (row,) = json.loads(serving.get("/api/corrections")[1])["rows"]
    assert (row["duplicate"], row["in_force"]) == (False, True)
