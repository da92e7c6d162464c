"""`twinsieve state info`: the contents of a state folder, as text and as JSON."""

import json
from pathlib import Path

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
    assert "a shared key" in shown


def test_a_folder_without_a_state_is_refused(cli: Cli, tmp_path: Path) -> None:
    """The message names the folder, and the folder is unchanged."""
    ran = cli("state", "info", tmp_path)
    assert ran.code == 1
    assert str(tmp_path) in ran.err
    assert list(tmp_path.iterdir()) == []
