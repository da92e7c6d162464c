"""`twinsieve groups` on a real state folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from dedup_service.core.page import Page
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from tests.interfaces.cli.running import Cli, article, page

pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder, which no test changes: a page, two longer copies, and an unrelated page."""
    folder = tmp_path_factory.mktemp("groups") / "state"
    more = " And one sentence more"
    with NearDuplicateFilter.open(folder) as dedup:
        dedup.check_many(
            [
                site_page(0, article(7), date="2024年3月5日"),
                site_page(1, f"{article(7)}{more}."),
                site_page(2, article(2)),
                site_page(3, f"{article(7)}{more}, longer.", url="https://www.other.example/3", title=""),
            ]
        )
    return folder


def site_page(number: int, text: str, **more: str) -> Page:
    """A page of a small site."""
    values = page(number, text) | more
    return Page(**values, canonical_url=str(values["url"]))  # type: ignore[arg-type]


def test_groups_are_lines_of_json(cli: Cli, state: Path) -> None:
    """Each kept page with its copies, in order; the summary is on stderr."""
    ran = cli("groups", "--state", state)
    assert ran.code == 0
    first, second = ran.lines
    assert [member["id"] for member in first["members"]] == ["p0", "p1", "p3"]
    assert (first["group"], first["size"], first["records"], first["omitted"]) == (1, 3, 3, 0)
    assert first["canonical"] == {"id": "p0", "url": "https://news.example/0", "sequence": 1}
    copy = first["members"][1]
    assert (copy["verdict"], copy["removed"], copy["source"]) == ("duplicate", None, None)
    assert [(member["date"], member["text_percent"]) for member in first["members"]] == [("2024-03-05", None)] + [
        (None, None)
    ] * 2
    assert copy["score"] > 0.9
    assert copy["at"].endswith("Z")
    assert [member["id"] for member in second["members"]] == ["p2"]
    assert json.loads(ran.err) == {"groups": 2, "members": 4, "omitted": 0, "left_out": 0, "deleted_up_to": 0}


@pytest.mark.parametrize(
    ("policy", "chosen"),
    [("longest", "p3"), ("complete", "p1"), ("hosts:other.example", "p3"), ("last_page:key", "p3"), ("earliest", "p0")],
)
def test_a_policy_chooses_the_page_that_stands_for_a_group(
    cli: Cli, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, chosen: str
) -> None:
    """Also a function in a module of the current folder; the members and their verdicts are the same."""
    (tmp_path / "last_page.py").write_text("def key(member):\n    return -member.sequence\n")
    monkeypatch.chdir(tmp_path)
    plain = cli("groups", "--state", state).lines[0]
    group = cli("groups", "--state", state, "--canonical", policy).lines[0]
    assert (group["canonical"]["id"], group["policy"]) == (chosen, policy)
    assert [verdict_of(member) for member in group["members"]] == [verdict_of(member) for member in plain["members"]]


def verdict_of(member: dict[str, Any]) -> tuple[Any, ...]:
    """What the journal says of a member."""
    return tuple(member[name] for name in ("sequence", "verdict", "score", "reason", "url"))


def test_groups_are_chosen_by_size_and_host(cli: Cli, state: Path) -> None:
    """What is left out is counted."""
    ran = cli("groups", "--state", state, "--min-size", 2)
    assert [group["group"] for group in ran.lines] == [1]
    assert json.loads(ran.err)["left_out"] == 1
    assert [group["size"] for group in cli("groups", "--state", state, "--host", "Other.example").lines] == [3]


def test_parquet_has_the_values_of_the_lines(cli: Cli, state: Path, tmp_path: Path) -> None:
    """One row a group, its members a list; the kind is that of the extension."""
    lines = cli("groups", "--state", state).lines
    assert cli("groups", "--state", state, "-o", tmp_path / "groups.parquet").code == 0
    rows = pq.read_table(tmp_path / "groups.parquet").to_pylist()
    for row in rows:
        for member in row["members"]:
            member["at"] = member["at"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
            member["date"] = member["date"] and member["date"].isoformat()
    assert rows == lines
    assert [path.name for path in tmp_path.glob("*.part*")] == []


@pytest.mark.parametrize(
    "policy", ["newest", "hosts:", "nowhere:function", "json:nothing", "bad_keys:broken", "bad_keys:mixed"]
)
def test_a_policy_that_does_not_work_is_refused(
    cli: Cli, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """Exit code 2, and a Parquet file that was there is left as it was."""
    (tmp_path / "bad_keys.py").write_text(
        "def broken(member):\n    raise KeyError(1)\n\n\ndef mixed(member):\n    return member.score or 'first'\n"
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.parquet").write_bytes(b"old")
    ran = cli("groups", "--state", state, "--canonical", policy, "-o", "old.parquet")
    assert (ran.code, ran.out) == (2, "")
    assert policy in ran.err
    assert (tmp_path / "old.parquet").read_bytes() == b"old"
    assert [path.name for path in tmp_path.glob("*.part*")] == []


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ([], "--state"),
        (["-o", "{state}/groups.jsonl", "--state", "{state}"], "state folder"),
        (["-o", "{state}/../nowhere/groups.parquet", "--state", "{state}"], "cannot write"),
        (["--host", "a b", "--state", "{state}"], "no host"),
        (["--base", "corpus=x", "--state", "{state}"], "--base is for a service's log"),
    ],
)
def test_wrong_usage(cli: Cli, state: Path, arguments: list[str], shown: str) -> None:
    """Exit code 2, and the message says what is wrong."""
    ran = cli("groups", *(argument.replace("{state}", str(state)) for argument in arguments))
    assert ran.code == 2
    assert shown in ran.err
