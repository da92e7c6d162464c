"""Copies of shards for another number of shards: the same answers as shards that were always so many."""

import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from dedup_service.core.decision.replica import Outcome
from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.shards.outcomes import MessageOutcome
from dedup_service.core.shards.shard import Shard, ShardNumber
from dedup_service.runtime.embedded.database import ForeignStateError, StateInUseError
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.kafka.messages.shard_messages import answer_parts
from dedup_service.runtime.kafka.shards.copying import CopiedShard, copy_shard
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.store.page_files import committed
from tests.core.shards.test_shards import log_of
from tests.page_names import NamesInMemory
from tests.runtime.kafka.shards.folders import opened
from tests.sharded_run import LoggedMessage, ShardedRun, messages_of, parts_of

WINDOW, PAGES = 16, 500


@cache
def log(seed: int) -> tuple[list[LoggedMessage], list[Outcome], list[MessageOutcome]]:
    """A log with all that operators do, what one process decides, and the outcomes of a resolver."""
    keep = Keep(max_pages=150) if seed % 2 else None
    messages = messages_of(list(log_of(seed, PAGES, rule_for(), WINDOW, keep)))
    resolved = ShardedRun(1)
    return messages, list(resolved.decide(messages)), resolved.decoded_outcomes()


def quiet(_stage: str, _done: int, _total: int) -> None:
    """No progress."""


def copy(number: str, folder: Path, *sources: object) -> CopiedShard:
    return copy_shard(ShardNumber.parse(number), folder, [str(source) for source in sources], quiet)


def cells_of(shard: Shard) -> tuple[int, int, int]:
    """Entries in the cells, cells in use, and those that turned entries away."""
    sizes = shard.sizes()
    assert sizes is not None
    cells = sizes.cells
    return cells.entries, cells.cells, cells.overflowed


def never_copied(number: str, seed: int) -> tuple[dict[int, list[bytes]], tuple[int, int, int]]:
    """The answers of a shard that was never copied, by offset, and its cells behind the last message."""
    messages, _, outcomes = log(seed)
    shard, learned, answers = Shard(ShardNumber.parse(number), NamesInMemory()), 0, {}
    for message in messages:
        shard.begin(message.offset, parts_of(message))
        while not shard.is_ready:
            shard.learn(outcomes[learned])
            learned += 1
        answers[message.offset] = list(answer_parts(shard.answer(), shard.number, "a-log"))
    return answers, cells_of(shard)


def snapshots(folder: Path, of: int, seed: int, ends: Sequence[int], *, eager: Sequence[int] = ()) -> list[Path]:
    """Folders of `of` shards with snapshots behind so many messages. eager: those that have learned all outcomes."""
    messages, _, outcomes = log(seed)
    folders = [folder / f"{index + 1}-of-{of}" for index in range(of)]
    for index, own in enumerate(folders):
        with opened(f"{index + 1}/{of}", own, messages) as shard:
            shard.answer_to(ends[index] // 2, outcomes)
            shard.snapshot()
            shard.answer_to(ends[index], outcomes)
            if index in eager:
                shard.learn(outcomes)
            shard.snapshot()
    return folders


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("seed", "of", "more"), [(1, 2, 2), (2, 1, 4), (3, 2, 4), (4, 4, 2)])
def test_a_copy_answers_as_a_shard_that_was_never_copied(seed: int, of: int, more: int, tmp_path: Path) -> None:
    """Byte for byte, to all later messages; names are in the copy, and what waited for its outcome goes on."""
    messages, _, outcomes = log(seed)
    rng = random.Random(seed)
    ends = [rng.randrange(len(messages) // 3, 2 * len(messages) // 3) for _ in range(of)]
    folders = snapshots(tmp_path, of, seed, ends, eager=[0])
    entries = 0
    for index in range(of * more):
        source, number = index % of, f"{index + 1}/{of * more}"
        copied = copy(number, tmp_path / f"new-{index}", folders[source])
        assert copied.entries == copied.names
        assert copied.offset == messages[ends[source] - 1].offset
        entries += copied.entries
        with opened(number, tmp_path / f"new-{index}", messages) as shard:
            assert len(shard.shard) == copied.entries
            assert shard.shard.undecided_pages
            answers = shard.answer_to(len(messages), outcomes)
            assert not shard.log.seeks, "a name was read from the log"
            cells = cells_of(shard.shard)
        expected, expected_cells = never_copied(number, seed)
        assert cells == expected_cells
        assert cells[2] > 10, "no cell has turned an entry away"
        assert answers == {message.offset: expected[message.offset] for message in messages[ends[source] :]}
    assert entries == sum(committed(folder / "pages").live_rows for folder in folders)  # type: ignore[union-attr]


@pytest.mark.parametrize(("seed", "of", "fewer"), [(5, 4, 2), (6, 4, 1), (7, 8, 2)])
def test_shards_at_one_message_are_merged(seed: int, of: int, fewer: int, tmp_path: Path) -> None:
    """The merged shard answers as one that always had these slots, whichever source knew more outcomes."""
    messages, _, outcomes = log(seed)
    end = len(messages) // 2
    folders = snapshots(tmp_path, of, seed, [end] * of, eager=[1, 2])
    for index in range(fewer):
        number = f"{index + 1}/{fewer}"
        copied = copy(number, tmp_path / f"new-{index}", *folders[index::fewer])
        assert copied.entries == copied.names > 20
        with opened(number, tmp_path / f"new-{index}", messages) as shard:
            answers = shard.answer_to(len(messages), outcomes)
        expected, _ = never_copied(number, seed)
        assert answers == {message.offset: expected[message.offset] for message in messages[end:]}


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders of 1/2 and 2/2, at two messages of log 4, and of 1/2 at the message of 2/2."""
    folder = tmp_path_factory.mktemp("halves")
    return snapshots(folder, 2, 4, [40, 44])


@pytest.mark.parametrize("kind", ["rows", "evidence", "places", "manifest"])
@pytest.mark.parametrize("change", ["flipped", "missing", "of another"])
def test_damage_is_refused(kind: str, change: str, halves: list[Path], tmp_path: Path) -> None:
    """A flipped byte, a missing file and one of another shard are found, and no folder is left that would be used."""
    source = tmp_path / "from"
    shutil.copytree(halves[0], source)
    path = source / "pages" / kind
    if change == "missing":
        path.unlink()
    elif change == "of another":
        shutil.copyfile(halves[1] / "pages" / kind, path)
    else:
        content = bytearray(path.read_bytes())
        for part in range(1, 8):  # of some pages another slot has the evidence
            content[len(content) * part // 8] ^= 1
        path.write_bytes(content)
    with pytest.raises(StateError):
        copy("1/4", tmp_path / "new", source)
    assert not (tmp_path / "new" / "pages").exists()
    assert not (tmp_path / "new" / "copying").exists()
    copy("1/4", tmp_path / "new", halves[0])


def test_only_shards_that_have_the_slots_are_taken(halves: list[Path], tmp_path: Path) -> None:
    """The error says which shards have them, and which source has none."""
    one, two = halves
    with pytest.raises(ConfigurationError, match="of 2 shards, 2/2 has them"):
        copy("6/8", tmp_path / "new", one)
    with pytest.raises(ConfigurationError, match="of 2 shards, 1/2 and 2/2 have them"):
        copy("1/1", tmp_path / "new", one)
    with pytest.raises(ConfigurationError, match="shard 2/2, which has no slots of 1/4"):
        copy("1/4", tmp_path / "new", one, two)
    with pytest.raises(ConfigurationError, match="no slots of 1/4 that no other source has"):
        copy("1/4", tmp_path / "new", one, one)
    with pytest.raises(ConfigurationError, match="use 1, 2, 4, 8"):
        copy("1/16", tmp_path / "new", one)
    with pytest.raises(ConfigurationError, match="is no folder"):
        copy("1/4", tmp_path / "new", tmp_path / "none")


def test_shards_at_different_messages_are_not_merged(halves: list[Path], tmp_path: Path) -> None:
    """The error names both places, and how to bring shards to one."""
    with pytest.raises(StateError, match=r"at message 78 of the log, .* at 86: .*wait until all"):
        copy("1/1", tmp_path / "new", *halves)


def test_states_of_something_else_are_refused(tmp_path: Path) -> None:
    """An embedded state, a folder without a snapshot, and an empty folder are no shards."""
    with NearDuplicateFilter.open(tmp_path / "embedded"):
        pass
    with pytest.raises(ForeignStateError, match="no state of a shard"):
        copy("1/4", tmp_path / "new", tmp_path / "embedded")
    with LocalState.open(tmp_path / "service"):
        pass
    with pytest.raises(StateError, match="has no snapshot of a shard"):
        copy("1/4", tmp_path / "new", tmp_path / "service")


def test_a_folder_with_anything_in_it_is_refused(halves: list[Path], tmp_path: Path) -> None:
    """A folder of a shard, somebody's file and a folder in use stay as they are."""
    new = tmp_path / "new"
    copy("1/4", new, halves[0])
    before = files_of(new)
    with pytest.raises(ConfigurationError, match=r"is not empty: it has names\.sqlite, pages"):
        copy("1/4", new, halves[0])
    assert files_of(new) == before
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"it has notes\.txt"):
        copy("1/4", other, halves[0])
    assert [path.name for path in other.iterdir()] == ["notes.txt"]
    with LocalState.open(tmp_path / "used"), pytest.raises(StateInUseError):
        copy("1/4", tmp_path / "used", halves[0])


KILLED = """
import os, sys
from pathlib import Path
from dedup_service.core.shards.shard import ShardNumber
from dedup_service.runtime.kafka.shards.copying import copy_shard
report = lambda stage, done, total: os._exit(9) if stage == sys.argv[1] else None
copy_shard(ShardNumber(1, 4), Path(sys.argv[2]), sys.argv[3:], report)
"""


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["entries", "tables", "check"])
def test_a_kill_leaves_nothing_that_is_used_and_the_next_copy_goes_through(
    stage: str, halves: list[Path], tmp_path: Path
) -> None:
    """A start sees no snapshot in the folder; the next copy clears it."""
    new = tmp_path / "new"
    done = subprocess.run([sys.executable, "-c", KILLED, stage, str(new), str(halves[0])], check=False)
    assert done.returncode == 9
    assert (new / "copying").is_dir()
    with LocalState.open(new) as local:
        assert local.pages.stored() is None
    copied = copy("1/4", new, halves[0])
    assert copied.entries > 10
    assert not (new / "copying").exists()
