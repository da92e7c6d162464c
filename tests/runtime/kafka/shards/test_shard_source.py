"""Snapshots of shards at addresses: copies in object storage, which a running shard may have torn."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.runtime.addresses import RemoteFolder
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.store.errors import StoreDamagedError
from tests.runtime.kafka.shards.folders import opened
from tests.runtime.kafka.shards.test_copying import copy, log, snapshots
from tests.s3_server import put


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of shard 1/2 with a snapshot."""
    return snapshots(tmp_path_factory.mktemp("half"), 2, 2, [44, 44])[0]


def rows_of(folder: Path) -> bytes:
    """The rows of a folder of one segment."""
    (path,) = (folder / "pages").glob("*.rows")
    return path.read_bytes()


@pytest.mark.parametrize("compacted", [False, True])
def test_an_address_gives_the_same_copy_as_its_folder(compacted: bool, half: Path, tmp_path: Path) -> None:
    """Entries and names are those of the folder, also a compacted one, and what was downloaded is gone."""
    source = tmp_path / "from"
    shutil.copytree(half, source)
    if compacted:
        with LocalState.open(source) as local:
            local.compact(lambda *_: None)
        assert list((source / "pages").glob("*.members"))
    copied = copy("3/4", tmp_path / "new", f"file://{source}/")
    direct = copy("3/4", tmp_path / "direct", half)
    assert (copied.entries, copied.names, copied.offset) == (direct.entries, direct.names, direct.offset)
    assert copied.names == copied.entries > 5
    assert rows_of(tmp_path / "new") == rows_of(tmp_path / "direct")
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        path.name for path in (tmp_path / "direct").iterdir()
    }


def test_a_snapshot_that_the_shard_replaces_meanwhile_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is gone is no damage if there is a newer manifest; what has not changed is not downloaded again."""
    messages, _, outcomes = log(2)
    gotten: list[str] = []
    with opened("1/2", tmp_path / "from", messages) as shard:
        shard.answer_to(40, outcomes)
        shard.snapshot()
        get = RemoteFolder.get

        def get_slowly(remote: Any, name: str, path: Path) -> None:
            if name.startswith("pages/live-") and not any(name.startswith("pages/live-") for name in gotten):
                shard.answer_to(44, outcomes)
                shard.snapshot()
            gotten.append(name)
            get(remote, name, path)

        monkeypatch.setattr(RemoteFolder, "get", get_slowly)
        copied = copy("1/4", tmp_path / "new", f"file://{tmp_path}/from")
        assert copied.offset == shard.shard.offset == messages[43].offset
    assert len([name for name in gotten if name.startswith("pages/live-")]) == 2
    with opened("1/4", tmp_path / "new", messages) as one:
        one.answer_to(len(messages), outcomes)


def test_an_incomplete_copy_says_how_to_copy(half: Path, tmp_path: Path) -> None:
    """The manifest has to come last, or the shard to be stopped."""
    shutil.copytree(half, tmp_path / "torn")
    (path,) = (tmp_path / "torn" / "pages").glob("live-*")
    path.unlink()
    with pytest.raises(StoreDamagedError, match=r"its pages/manifest.json last, or stop the shard first"):
        copy("1/4", tmp_path / "new", f"file://{tmp_path}/torn")
    with pytest.raises(StateError, match=r"has no pages/manifest.json"):
        copy("1/4", tmp_path / "new", f"file://{tmp_path}/nothing")


@pytest.mark.parametrize("module", ["fsspec", "fsspec.core"])
def test_without_the_extra_the_error_says_what_to_install(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The libraries are imported for an address alone."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError, match=r"pip install 'twinsieve\[s3\]'"):
        copy("1/4", tmp_path / "new", "s3://bucket/shard")
    with pytest.raises(ConfigurationError, match="is no folder"):
        copy("1/4", tmp_path / "new", tmp_path / "none")


def test_an_unknown_protocol_is_wrong_usage(tmp_path: Path) -> None:
    """The error names the address."""
    with pytest.raises(ConfigurationError, match="nothing://bucket is no address"):
        copy("1/4", tmp_path / "new", "nothing://bucket")


@pytest.mark.slow
def test_a_shard_is_copied_from_object_storage(half: Path, tmp_path: Path, s3: str) -> None:
    """The command reads s3:// through the extra, and gives the same rows; a missing bucket is one line."""
    put(f"{s3}/shards")
    for path in half.rglob("*"):
        if path.is_file():
            put(f"{s3}/shards/two/{path.relative_to(half)}", path.read_bytes())
    copy("1/4", tmp_path / "direct", half)
    command = [sys.executable, "-m", "dedup_service.interfaces.cli", "shard", "copy", "--shard", "1/4", "--state"]
    done = subprocess.run(
        [*command, str(tmp_path / "new"), "s3://shards/two"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    copied = json.loads(done.stdout)
    assert (copied["shard"], copied["log"], copied["offset"]) == ("1/4", "a-log", 86)
    assert rows_of(tmp_path / "new") == rows_of(tmp_path / "direct")
    missing = subprocess.run(
        [*command, str(tmp_path / "none"), "s3://nothing/two"], capture_output=True, text=True, check=False
    )
    assert missing.returncode == 1
    assert "s3://nothing/two has no pages/manifest.json" in missing.stderr
    assert "Traceback" not in missing.stderr
