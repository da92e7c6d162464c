"""Shards and a resolver of a log with bases give the outcomes of one process, and never change the bases."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dedup_service.core.decision.replica import Outcome, Replica
from dedup_service.core.log_records import LogRecord, PageRecord, PolicyRecord, first_offset
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.shards.shard import Shard, ShardNumber
from dedup_service.runtime.embedded.state import StateSettings
from dedup_service.runtime.kafka.shards.shard_bases import ShardBases
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.mounted_bases import BASES_FOLDER, MountedBases
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes
from dedup_service.runtime.kafka.state.shard_state import ShardReplica, shard_state
from tests.page_names import NamesInMemory
from tests.runtime.embedded.prepared import SPACE_ID
from tests.runtime.embedded.test_bases import GUARDED, digests, stream
from tests.runtime.kafka.state.test_mounted_bases import first_with, log_of, made
from tests.sharded_run import LoggedMessage, ShardedRun, messages_of, parts_of

SHARED = StateSettings(IndexLayout(slots=8, window=8), snapshot_every=40)


class Shards:
    """Processes of one log in folders below `folder`: shards and a resolver, all with the bases."""

    def __init__(
        self,
        folder: Path,
        of: int,
        first: PolicyRecord,
        given: dict[str, str],
        stack: ExitStack,
        log: str | None = None,
    ) -> None:
        self.folder, self.first, self.given, self._stack = folder, first, given, stack
        resolver = self.mounted("resolver")
        self.run = ShardedRun(of, names=lambda: resolver.names(NamesInMemory()), bases=resolver.begun)
        self.locals = [self.local(number) for number in range(of)]
        self.run.shards = [self.shard(number, log) for number in range(of)]

    def mounted(self, name: str) -> MountedBases:
        """The bases, as one process opens them."""
        bases = MountedBases.open(self.first.policy.bases, self.given, self.folder / name / BASES_FOLDER, SPACE_ID)
        return self._stack.enter_context(closing(bases))

    def local(self, number: int) -> LocalState:
        """The folder of a shard."""
        return self._stack.enter_context(LocalState.open(self.folder / f"{number}"))

    def shard(self, number: int, log: str | None) -> Shard:
        """A shard, from its snapshot, or for None from the beginning of the log."""
        local, bases, own = self.locals[number], self.mounted(f"{number}"), ShardNumber(number + 1, self.run.of)
        stored = None if log is None else local.pages.stored()
        of_shard = ShardBases(bases, own)
        local.pages.begin(stored, bases=of_shard)
        local.names.begin(self.first.log or "", -1 if stored is None else stored.sequence, _no_names)
        state = None if stored is None else shard_state(stored.state.replica)
        names = bases.names(local.names)
        return Shard(own, names, entries=local.pages.entries, state=state, bases=of_shard.begun)

    def restart(self) -> None:
        """Let every shard take a snapshot, end, and begin again from it."""
        for number, shard in enumerate(self.run.shards):
            local = self.locals[number]
            local.take_snapshot(ShardReplica(shard), PendingOutcomes(), "")
            local.close()
            self.locals[number] = self.local(number)
            self.run.shards[number] = self.shard(number, self.first.log)


def _no_names(sequence: int) -> dict[int, tuple[str, str]]:
    raise KeyError(sequence)


def messages_with(records: Sequence[LogRecord], size: int) -> list[LoggedMessage]:
    """The messages of a log, with `size` pages at most."""
    first = records[0]
    assert isinstance(first, PolicyRecord)
    batches: list[list[LogRecord]] = [[first]]
    for record in records[1:]:
        together = isinstance(record, PageRecord) and isinstance(batches[-1][-1], PageRecord)
        if together and len(batches[-1]) < size:
            batches[-1].append(record)
        else:
            batches.append([record])
    return messages_of(batches, first_offset(first.policy.based_on))


def decided_by_one(
    folder: Path, messages: Sequence[LoggedMessage], first: PolicyRecord, given: dict[str, str]
) -> Iterator[Outcome]:
    """The outcomes of one process with all entries."""
    with (
        LocalState.open(folder) as local,
        closing(MountedBases.open(first.policy.bases, given, folder / BASES_FOLDER, SPACE_ID)) as bases,
    ):
        local.pages.begin(None, bases=bases)
        replica = Replica(bases.names(NamesInMemory()), entries=local.pages.entries, bases=bases.begun)
        for message in messages:
            yield from replica.apply_parts(parts_of(message))


@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(0, 120),
    split=st.floats(0, 1),
    size=st.integers(1, 8),
    of=st.sampled_from([1, 2, 4]),
    most=st.none() | st.integers(1, 40),
    restarts=st.sets(st.integers(1, 60), max_size=4),
    cut=st.floats(0, 1),
)
def test_outcomes_are_those_of_one_process(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    count: int,
    split: float,
    size: int,
    of: int,
    most: int | None,
    restarts: set[int],
    cut: float,
) -> None:
    """For any number of shards, with all of them restarted in the middle, and the resolver anywhere."""
    folder, records = tmp_path_factory.mktemp("shards"), stream(seed, count)
    border = int(split * len(records))
    made(folder / "corpus", records[:border], None if most is None else Keep(max_pages=most), SHARED)
    before, given = digests(folder / "corpus"), {"corpus": str(folder / "corpus")}
    first = first_with(given, folder)
    messages = messages_with(log_of(first, records[border:]), size)
    expected = list(decided_by_one(folder / "one", messages, first, given))
    with ExitStack() as stack:
        shards = Shards(folder / "shards", of, first, given, stack)
        shards.run.restarts = frozenset(restarts)
        middle = int(cut * len(messages))
        found = list(shards.run.follow(messages[:middle]))
        shards.restart()
        found += list(shards.run.follow(messages[middle:]))
    assert found == expected
    assert digests(folder / "corpus") == before


@pytest.mark.parametrize("rule", [GUARDED, rule_for("body")])
def test_several_bases_are_shared_by_shards(tmp_path: Path, rule: MatchRule) -> None:
    """The rows of all of them are in the slots that their ordinals say; a rule that they had not finds them, too."""
    records = stream(7, 90)
    parts = (("a", records[:40]), ("b", records[30:70]))
    given = {name: str(made(tmp_path / name, some, setting=SHARED)) for name, some in parts}
    first = first_with(given, tmp_path)
    first = replace(first, policy=replace(first.policy, rule=rule))
    messages = messages_with(log_of(first, records[60:] + records[:50]), 8)
    expected = list(decided_by_one(tmp_path / "one", messages, first, given))
    with ExitStack() as stack:
        found = list(Shards(tmp_path / "shards", 4, first, given, stack).run.decide(messages))
    assert found == expected
    bases = {outcome.verdict.duplicate_of_base for outcome in found if outcome.verdict is not None}
    assert bases == {None, "a", "b"}
    assert not any(path.is_symlink() for path in (tmp_path / "shards" / "0" / "pages").iterdir())
    shutil.rmtree(tmp_path / "shards")
