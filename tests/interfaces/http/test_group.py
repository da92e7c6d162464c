"""`/api/group` on a real server, with a running filter."""

import json
import urllib.error
import urllib.request
from dataclasses import replace
from typing import NoReturn
from urllib.parse import quote

import pytest
from starlette.applications import Starlette

from dedup_service.core.groups.canonical import canonical_policy
from dedup_service.interfaces.http.explain_routes import ExplainBackend
from dedup_service.interfaces.http.group_routes import MAX_SHOWN, NO_GROUPS, group_routes
from dedup_service.interfaces.http.server import Address, HttpServer
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.groups.live_groups import LiveGroups
from tests.hangs import HANG_S
from tests.interfaces.cli.running import article
from tests.interfaces.http.test_why import TEXT, Ask, ask, dashboard, dedup, story

__all__ = ["ask", "dashboard", "dedup"]


def test_the_group_of_a_page(ask: Ask, dedup: NearDuplicateFilter) -> None:
    """Named by any of its pages: all of them, in the order of the log, and which stands for it under a policy."""
    dedup.check(story(4, TEXT + " In 2025, again."))
    status, group = ask(f"/api/group?url={quote('https://a.example/2?utm_source=x')}")
    assert status == 200
    assert [member["id"] for member in group["members"]] == ["p1", "p2", "p4"]
    assert (group["group"], group["size"], group["canonical"]["id"], group["policy"]) == (1, 3, "p1", "earliest")
    assert (group["has_more"], group["omitted"], group["version"]) == (False, 0, 1)
    assert {member["letters"] is None for member in group["members"]} == {False}
    longest = ask("/api/group?sequence=1&canonical=longest")[1]
    assert (longest["members"], longest["canonical"]["id"]) == (group["members"], "p4")
    assert [member["id"] for member in ask("/api/group?sequence=3")[1]["members"]] == ["p3"]


def test_an_update_shows_which_group_it_left(ask: Ask, dedup: NearDuplicateFilter) -> None:
    """The earlier group says what became of its page."""
    dedup.check(story(1, article(5)))
    new = ask("/api/group?url=https://a.example/1")[1]
    assert (new["group"], new["follows"], [member["id"] for member in new["members"]]) == (4, 1, ["p1"])
    old = ask("/api/group?sequence=1")[1]
    assert [member["removed"] for member in old["members"]] == ["update", None]
    assert old["canonical"]["id"] == "p2"


def test_a_page_that_was_taken_down_is_not_named(ask: Ask, dedup: NearDuplicateFilter) -> None:
    """Its group is still found by its sequence and by its copies, one of which stands for it."""
    dedup.retract("p1")
    group = ask("/api/group?sequence=1")[1]
    assert group == ask("/api/group?url=https://a.example/2")[1]
    first, copy = group["members"]
    assert (first["url"], first["title"], first["removed"]) == ("[erased]", "", "retraction")
    assert (group["canonical"]["id"], copy["removed"], group["size"]) == ("p2", None, 1)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("", 400),
        ("?sequence=1&url=https://a.example/1", 400),
        ("?sequence=1&canonical=newest", 400),
        ("?sequence=1&canonical=os:getcwd", 400),
        (f"?sequence=1&canonical=hosts:{'a,' * 600}", 400),
        ("?sequence=99", 404),
        ("?url=https://a.example/99", 404),
    ],
)
def test_bad_questions(ask: Ask, path: str, status: int) -> None:
    """A function cannot be named here: a stranger could choose it."""
    code, answer = ask(f"/api/group{path}")
    assert (code, set(answer)) == (status, {"error"})


def test_strings_of_pages_are_harmless_and_members_few(ask: Ask, dedup: NearDuplicateFilter) -> None:
    """Control characters are gone, long titles are cut, and a large group is not listed as a whole."""
    title = "\u202e\x1b[31m" + "x" * 1000
    dedup.check_many([replace(story(at, article(9)), title=title) for at in range(10, 10 + MAX_SHOWN + 5)])
    group = ask("/api/group?url=https://a.example/10")[1]
    assert (group["size"] > MAX_SHOWN, group["omitted"]) == (True, group["records"] - MAX_SHOWN)
    assert {(len(member["title"]), member["title"][:5]) for member in group["members"]} == {(298, "[31mx")}


def test_a_filter_in_memory_has_groups_too() -> None:
    """Its kept pages are nowhere but in the filter; of a large group, the first pages are read."""
    with NearDuplicateFilter.open(None) as dedup:
        dedup.check_many([story(at, TEXT) for at in range(5)])
        group, has_more = LiveGroups(dedup).find("p3", canonical_policy("complete"), max_members=2)
        assert (group.size, len(group.members), group.omitted, has_more) == (5, 2, 3, False)
        assert group.members[0].letters == group.members[1].letters
        group, has_more = LiveGroups(dedup).find("p3", canonical_policy("complete"), max_members=2, max_pages=3)
        assert (group.size, has_more) == (3, True)


def test_a_service_says_what_to_run_instead() -> None:
    """Its log has no index of groups."""

    def unasked() -> NoReturn:
        raise AssertionError("nothing is asked")

    backend = ExplainBackend(unasked, unasked)
    try:
        with HttpServer(Starlette(routes=group_routes(backend)), Address("127.0.0.1", 0)) as server:
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"http://{server.address}/api/group?sequence=1", timeout=HANG_S)
            with refused.value as answer:
                assert (answer.code, json.load(answer)) == (404, {"error": NO_GROUPS})
    finally:
        backend.close()
