"""Snapshots of shards at addresses: copies in object storage, which a running shard may have torn."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dedup_service._native import Entry
from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.runtime.addresses import RemoteFolder
from dedup_service.runtime.kafka.shards import copying
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.page_files import open_pages
from tests.runtime.kafka.shards.folders import opened
from tests.runtime.kafka.shards.test_copying import copy, log, snapshots
from tests.s3_server import put


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of shard 1/2 with a snapshot."""
    return snapshots(tmp_path_factory.mktemp("half"), 2, 2, [44, 44])[0]


def entries_of(folder: Path) -> list[Entry]:
    """The entries of a folder."""
    store = open_pages(folder / "pages")
    assert store is not None
    with closing(store):
        return store.entries(store.live_rows(0, 1 << 20))


@pytest.mark.parametrize("compacted", [False, True])
def test_an_address_gives_the_same_copy_as_its_folder(compacted: bool, half: Path, tmp_path: Path) -> None:
    """Entries and names are those of the folder, also a compacted one, and what was downloaded is gone."""
    source = tmp_path / "from"
    shutil.copytree(half, source)
    if compacted:
        with LocalState.open(source) as local:
            local.compact(lambda *_: None)
    copied = copy("3/4", tmp_path / "new", f"file://{source}/")
    direct = copy("3/4", tmp_path / "direct", half)
    assert (copied.entries, copied.names, copied.offset) == (direct.entries, direct.names, direct.offset)
    assert copied.names == copied.entries > 5
    assert entries_of(tmp_path / "new") == entries_of(tmp_path / "direct")
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        path.name for path in (tmp_path / "direct").iterdir()
    }


def test_a_snapshot_that_the_shard_replaces_meanwhile_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit is no damage if there is a newer manifest."""
    messages, _, outcomes = log(2)
    gotten: list[str] = []
    with opened("1/2", tmp_path / "from", messages) as shard:
        shard.answer_to(40, outcomes)
        shard.snapshot()
        get = RemoteFolder.get

        def get_slowly(remote: Any, name: str, path: Path, more: Callable[[int], None] | None = None) -> None:
            if name == "pages/rows" and name not in gotten:
                shard.answer_to(44, outcomes)
                shard.snapshot()
            gotten.append(name)
            get(remote, name, path) if more is None else get(remote, name, path, more)
            if name == "pages/rows" and gotten.count(name) == 1:  # as if a disk had lost it
                path.write_bytes(b"")

        monkeypatch.setattr(RemoteFolder, "get", get_slowly)
        copied = copy("1/4", tmp_path / "new", f"file://{tmp_path}/from")
        assert copied.offset == shard.shard.offset == messages[43].offset
    assert gotten.count("pages/rows") == 2
    with opened("1/4", tmp_path / "new", messages) as one:
        one.answer_to(len(messages), outcomes)


def test_a_copy_has_what_the_shard_removes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is of one snapshot, but for a page that is taken down."""
    messages, _, outcomes = log(1)
    with opened("1/2", tmp_path / "from", messages) as shard:
        shard.answer_to(30, outcomes)
        shard.snapshot()
        direct = copy("1/4", tmp_path / "direct", tmp_path / "from")
        append = copying._append_entries

        def append_slowly(*values: Any) -> tuple[int, int]:
            shard.answer_to(len(messages), outcomes)
            shard.snapshot()
            entries, store = shard.local.pages._entries, open_pages(tmp_path / "from" / "pages")
            assert entries is not None
            assert store is not None
            with closing(store):
                gone = [one.sequence for one in expected if store.find(one.sequence) is None]
            assert len(gone) >= 3
            entries.erase(gone[0])
            taken_down.append(gone[0])
            return append(*values)

        expected, taken_down = entries_of(tmp_path / "direct"), list[int]()
        monkeypatch.setattr(copying, "_append_entries", append_slowly)
        copied = copy("1/4", tmp_path / "new", tmp_path / "from")
    assert (copied.entries, copied.offset) == (direct.entries - 1, direct.offset)
    assert entries_of(tmp_path / "new") == [one for one in expected if one.sequence != taken_down[0]]


def test_an_incomplete_copy_says_how_to_copy(half: Path, tmp_path: Path) -> None:
    """The manifest has to come first, or the shard to be stopped."""
    shutil.copytree(half, tmp_path / "torn")
    (tmp_path / "torn" / "pages" / "places").unlink()
    with pytest.raises(StoreDamagedError, match=r"its pages/manifest first, or stop the shard first"):
        copy("1/4", tmp_path / "new", f"file://{tmp_path}/torn")
    with pytest.raises(StateError, match=r"has no pages/manifest"):
        copy("1/4", tmp_path / "new", f"file://{tmp_path}/nothing")


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
    assert entries_of(tmp_path / "new") == entries_of(tmp_path / "direct")
    missing = subprocess.run(
        [*command, str(tmp_path / "none"), "s3://nothing/two"], capture_output=True, text=True, check=False
    )
    assert missing.returncode == 1
    assert "s3://nothing/two has no pages/manifest" in missing.stderr
    assert "Traceback" not in missing.stderr
