"""`twinsieve state info`: the contents of a state folder, as text and as JSON."""

import json
from pathlib import Path

import pytest

from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from tests.interfaces.cli.running import Cli, page, write_lines


def test_counts_of_a_state(cli: Cli, tmp_path: Path) -> None:
    """The output has pages by verdict, the last sequence, space and rule."""
    state, pages = tmp_path / "state", write_lines(tmp_path / "pages.jsonl", [page(1), page(2), page(1, id="again")])
    space = cli("filter", pages, "--state", state).lines[0]["space"]
    info = json.loads(cli("state", "info", state, "--json").out)
    assert (info["space_id"], info["sequence"], info["entries"]) == (space, 3, 2)
    assert (info["pages"]["unique"], info["pages"]["unchanged"]) == (2, 1)
    shown = cli("state", "info", state).out
    assert space in shown
    assert "balanced" in shown


def test_sizes_by_structure(cli: Cli, tmp_path: Path) -> None:
    """Memory and disk are listed by structure, and the state of a service has its last snapshot's."""
    state, pages = tmp_path / "state", write_lines(tmp_path / "pages.jsonl", [page(1), page(2)])
    cli("filter", pages, "--state", state)
    shown = cli("state", "info", state).out
    assert "Memory, at the last commit" in shown
    assert "blocks words" in shown
    service = tmp_path / "service"
    service.mkdir()
    (service / "instance").write_text("a\n")
    assert "last commit │ none" in cli("state", "info", service).out
    (state / "pages").rename(service / "pages")
    info = json.loads(cli("state", "info", service, "--json").out)
    assert info["commit_sequence"] == 2
    assert info["memory"]["cells"] > 0


def test_compact_gives_space_back_and_changes_no_verdict(cli: Cli, tmp_path: Path) -> None:
    """One line has the bytes before and after; a taken-down page stays gone, a kept one is known."""
    state, pages = tmp_path / "state", write_lines(tmp_path / "pages.jsonl", [page(number) for number in range(9)])
    cli("filter", pages, "--state", state)
    cli("retract", page(3)["url"], "--state", state)
    ran = cli("state", "compact", state)
    assert (ran.code, ran.err) == (0, "")
    assert "bytes before" in ran.out
    again = write_lines(tmp_path / "again.jsonl", [page(3, id="x"), page(4, id="y")])
    assert [line["verdict"] for line in cli("filter", again, "--state", state).lines] == ["unique", "unchanged"]


def test_compact_refuses_a_folder_that_is_in_use(cli: Cli, tmp_path: Path) -> None:
    """The message names the process, and nothing changes; a folder without a state is refused, too."""
    with NearDuplicateFilter.open(tmp_path):
        ran = cli("state", "compact", tmp_path)
    assert ran.code == 1
    assert "is in use by process" in ran.err
    assert cli("state", "compact", tmp_path / "none").code == ExitCode.USAGE
    service = tmp_path / "service"
    service.mkdir()
    (service / "instance").write_text("a\n")
    assert "has no snapshot" in cli("state", "compact", service).err


def test_a_folder_without_a_state_is_refused(cli: Cli, tmp_path: Path) -> None:
    """The message names the folder, and the folder is unchanged."""
    ran = cli("state", "info", tmp_path)
    assert ran.code == 1
    assert str(tmp_path) in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        ("state", "info", "STATE"),
        ("groups", "--state", "STATE"),
        ("why", page(1)["url"], "--state", "STATE"),
        ("corrections", "--state", "STATE"),
        ("corrections", "--state", "STATE", "--export", "pairs.jsonl"),
        ("policy", "show", "--state", "STATE"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_commands_that_only_read_leave_a_state_folder_as_it_was(
    cli: Cli, tmp_path: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They make no file in it, and change none."""
    monkeypatch.chdir(tmp_path)
    state, pages = tmp_path / "state", write_lines(tmp_path / "pages.jsonl", [page(1), page(2), page(1, id="again")])
    cli("filter", pages, "--state", state)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in state.rglob("*") if path.is_file()}
    ran = cli(*(str(state) if word == "STATE" else word for word in command))
    assert ran.code == 0, ran.err
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in state.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "command",
    [("state", "info"), ("state", "compact"), ("groups", "--state"), ("why", "https://a.example/", "--state")],
)
def test_a_missing_folder_is_a_wrong_command(cli: Cli, tmp_path: Path, command: tuple[str, ...]) -> None:
    """As any file that is not there; nothing is created."""
    ran = cli(*command, tmp_path / "none")
    assert (ran.code, "there is no folder" in ran.err) == (2, True)
    assert not list(tmp_path.iterdir())
