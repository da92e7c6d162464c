"""The dashboard of the service: the same page, for the whole log, with texts from the topic `pages`."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.messages.headers import page_key
from dedup_service.runtime.kafka.topics import Topics
from tests.integration.conftest import Broker
from tests.integration.dashboard.browsing import BrowserPage
from tests.integration.serving import Serving
from tests.interfaces.cli.running import article, page

pytestmark = pytest.mark.slow


def publish(broker: Broker, topics: Topics, numbers: range) -> None:
    """Publish pages, each a copy of the one twenty before, keyed as producers key them."""
    pages = [page(number, article(number % 20)) for number in numbers]
    messages = [Message(topics.pages, json.dumps(values).encode(), page_key(str(values["url"]))) for values in pages]
    append(broker.connection, topics.pages, messages)


def test_a_log_is_watched_explained_and_corrected(
    broker: Broker, topics: Topics, serve: Callable[..., Serving], watch: Callable[..., BrowserPage]
) -> None:
    """Rows appear as pages are published; a duplicate is explained with texts of `pages`, and corrected."""
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
