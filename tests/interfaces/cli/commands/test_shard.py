"""`twinsieve shard copy`: usage, output and exit codes."""

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.running import Cli
from tests.runtime.kafka.shards.test_copying import snapshots


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of shard 2/2 with a snapshot."""
    return snapshots(tmp_path_factory.mktemp("half"), 2, 2, [30, 30])[1]


def test_facts_of_a_copy(cli: Cli, half: Path, tmp_path: Path) -> None:
    """One line of JSON with entries, names, bytes, seconds and the place in the log."""
    ran = cli("shard", "copy", "--shard", "6/8", "--state", tmp_path / "more", half)
    assert (ran.code, ran.err) == (0, "")
    (facts,) = ran.lines
    assert (facts["shard"], facts["offset"], facts["log"]) == ("6/8", 58, "a-log")
    assert facts["entries"] == facts["names"] > 0
    assert facts["size_bytes"] == sum(path.stat().st_size for path in (tmp_path / "more").rglob("*") if path.is_file())
    info = json.loads(cli("state", "info", tmp_path / "more", "--json").out)
    assert (info["live_rows"], info["rows"]) == (facts["entries"], facts["entries"])


def test_wrong_usage(cli: Cli, half: Path, tmp_path: Path) -> None:
    """No source, no number, a number that is none, a source without the slots, a folder in use: code 2, and why."""
    new = tmp_path / "new"
    assert cli("shard", "copy", "--shard", "2/4", "--state", new).code == 2
    assert cli("shard", "copy", "--state", new, half).code == 2
    assert cli("shard", "copy", "--shard", "2/4", half).code == 2
    wrong = cli("shard", "copy", "--shard", "5/4", "--state", new, half)
    assert (wrong.code, "counted from 1" in wrong.err) == (2, True)
    wrong = cli("shard", "copy", "--shard", "1/4", "--state", new, half)
    assert (wrong.code, "of 2 shards, 1/2 has them" in wrong.err) == (2, True)
    wrong = cli("shard", "copy", "--shard", "2/4", "--state", half, half)
    assert (wrong.code, "is not empty" in wrong.err) == (2, True)


def test_a_folder_without_a_snapshot_fails(cli: Cli, tmp_path: Path) -> None:
    """Code 1, and what to do."""
    (tmp_path / "none").mkdir()
    ran = cli("shard", "copy", "--shard", "2/4", "--state", tmp_path / "new", tmp_path / "none")
    assert ran.code == 1
    assert "wait for its first one, or stop the shard" in ran.err
