"""`/api/why` and `/api/corrections` on a real server, with a running filter."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dedup_service.core.page import Page
from dedup_service.interfaces.http.dashboard import EmbeddedDashboard
from dedup_service.interfaces.http.server import Address
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from tests.hangs import HANG_S
from tests.interfaces.cli.running import article

TEXT = ". ".join(article(at, 12) for at in range(20))
Ask = Callable[..., tuple[int, Any]]


def story(number: int, text: str) -> Page:
    """Return a page of a small site."""
    url = f"https://a.example/{number}"
    return Page(url=url, canonical_url=url, id=f"p{number}", title=f"Story {number}", text=text)


@pytest.fixture
def dashboard() -> EmbeddedDashboard:
    """A dashboard without a token, on loopback."""
    return EmbeddedDashboard(Address("127.0.0.1", 0), None, "filter")


@pytest.fixture
def dedup(tmp_path: Path, dashboard: EmbeddedDashboard) -> Iterator[NearDuplicateFilter]:
    """A filter that has seen a page, a copy of it, and an unrelated page."""
    with NearDuplicateFilter.open(tmp_path / "state", observers=dashboard.observers) as opened:
        opened.check_many([story(1, TEXT), story(2, TEXT + " In 2024."), story(3, article(77))])
        yield opened


@pytest.fixture
def ask(dashboard: EmbeddedDashboard, dedup: NearDuplicateFilter) -> Iterator[Ask]:
    """Return a function that sends a request: a path, and a body for POST."""
    with dashboard.serving(dedup, lambda: None) as server:

        def call(path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
            data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
            named = {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
            request = urllib.request.Request(f"http://{server.address}{path}", data=data, headers=named)
            try:
                with urllib.request.urlopen(request, timeout=HANG_S) as response:
                    return response.status, json.load(response)
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, json.load(error)

        yield call


def test_why_a_page_was_dropped(ask: Ask) -> None:
    """Named by URL or sequence, it shows what decided and the differences."""
    status, values = ask(f"/api/why?url={quote('https://a.example/2?utm_source=x')}")
    assert status == 200
    assert (values["page"]["sequence"], values["verdict"]["kind"], values["verdict"]["of"]) == (2, "duplicate", 1)
    assert values["match"]["row"] == values["verdict"]["reason"]
    assert values["match"]["numbers"] == {"one": ["2024"], "other": []}
    assert values["match"]["features"]["shared"]
    assert (values["policy"]["text"], values["has_groups"]) == ("balanced", True)
    assert ask("/api/why?sequence=2")[1] == values


def test_why_a_page_was_kept(ask: Ask) -> None:
    """It shows the requested number of neighbours, each with the bound that failed; one can be compared."""
    values = ask("/api/why?sequence=3")[1]
    assert values["match"] is None
    assert [pair["why_not"] is None for pair in values["neighbours"]] == [False]
    assert ask("/api/why?sequence=3&neighbours=0")[1]["neighbours"] == []
    compared = ask("/api/why?sequence=3&of=1")[1]["match"]
    assert (compared["other"]["sequence"], compared["matches"]) == (1, False)
    assert compared["passages"]


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ("", 400, "name the page"),
        ("?url=https://a.example/1&sequence=1", 400, "name the page"),
        ("?sequence=0", 400, "sequence must be an integer"),
        ("?sequence=-1", 400, "sequence must be an integer"),
        ("?sequence=1&neighbours=21", 400, "from 0 to 20"),
        ("?url=" + "x" * 10_001, 400, "at most"),
        ("?sequence=99", 404, "page 99 is not in the log"),
        ("?url=https://a.example/99", 404, "https://a.example/99"),
        ("?url=%1b%5b31m", 404, "is not in the log"),
        ("?sequence=1&of=nobody", 404, "nobody"),
    ],
)
def test_invalid_questions_are_refused(ask: Ask, query: str, status: int, says: str) -> None:
    """The answer says why, without control characters."""
    code, values = ask(f"/api/why{query}")
    assert (code, list(values)) == (status, ["error"])
    assert says in values["error"]
    assert values["error"].isprintable()


def test_a_correction_is_in_force_from_the_next_delivery(
    ask: Ask, dedup: NearDuplicateFilter, dashboard: EmbeddedDashboard
) -> None:
    """The running filter applies it; it is in the audit trail and in the event stream."""
    body = {"url": "https://a.example/2", "of": 1, "duplicate": False, "reason": "two\x1b events"}
    status, answer = ask("/api/corrections", body)
    assert status == 201
    correction = answer["correction"]
    assert (correction["url"], correction["of"]) == ("https://a.example/2", "https://a.example/1")
    assert (correction["by"], correction["reason"], correction["in_force"]) == ("127.0.0.1", "two events", True)
    assert dedup.check(story(2, TEXT + " In 2024.")).kind == "unique"
    assert ask("/api/corrections")[1]["rows"] == [correction]
    assert [row["sequence"] for row in ask("/api/why?sequence=2")[1]["corrections"]] == [correction["sequence"]]
    live_stats = dashboard.live_stats
    sent = b"".join(event.frame for event in live_stats.events.since(f"{live_stats.events.run}-0") or [])
    sent += b"".join(event.frame for event in live_stats.tick(lambda _: {}))
    assert b"event: correction" in sent
    ask("/api/corrections", {**body, "duplicate": True})
    rows = ask("/api/corrections?limit=1")[1]["rows"]
    assert [row["duplicate"] for row in rows] == [True]
    assert [row["in_force"] for row in ask("/api/corrections")[1]["rows"]] == [True, False]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "send"),
        (b"[]", 400, "send"),
        ({"url": "https://a.example/1", "of": "https://a.example/2"}, 400, "duplicate"),
        ({"url": "https://a.example/1", "of": "https://a.example/2", "duplicate": 1}, 400, "duplicate"),
        ({"url": "https://a.example/1", "of": "https://a.example/2", "duplicate": True, "by": "me"}, 400, "by"),
        ({"url": "https://a.example/1", "of": "https://a.example/1", "duplicate": True}, 400, "one page"),
        ({"url": 2, "of": 1, "duplicate": True, "reason": "x" * 201}, 400, "at most 200"),
        ({"url": "https://a.example/99", "of": "https://a.example/1", "duplicate": True}, 404, "a.example/99"),
        ({"url": "https://a.example/1", "of": "nowhere", "duplicate": False}, 404, "nowhere"),
        ({"url": 1, "of": 99, "duplicate": False}, 404, "99"),
    ],
)
def test_corrections_that_are_refused(ask: Ask, body: Any, status: int, says: str) -> None:
    """The answer says why, and nothing is recorded."""
    code, values = ask("/api/corrections", body)
    assert code == status
    assert says in values["error"]
    assert ask("/api/corrections")[1]["rows"] == []


def test_corrections_are_behind_the_access_guard(ask: Ask) -> None:
    """The page of another site cannot send a correction, and JSON is required."""
    body = {"url": 2, "of": 1, "duplicate": False}
    assert ask("/api/corrections", body, origin="https://evil.example")[0] == 403
    assert ask("/api/corrections", body, content_type="text/plain")[0] == 415
    assert ask("/api/corrections")[1]["rows"] == []
