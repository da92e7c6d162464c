"""A crash is a value in the test's input: after any crash, the resumed run gives the verdicts of one run."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.decision.entries import Entry
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.guards import NO_GUARDS, Guards
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Verdict
from dedup_service.runtime.embedded.state import JOURNAL_FILE, PAGES_FOLDER, State, StateSettings
from dedup_service.runtime.store.manifest import MANIFEST, read_manifest
from tests.runtime.embedded.prepared import SPACE, SPACE_ID, prepared

BATCH = 3
LAYOUT = IndexLayout(slots=2, window=4)
"""A window that ends inside of a batch."""

Delivery = tuple[PreparedPage, bytes]


@dataclass(frozen=True)
class Crash:
    """Where a run stops. batches: how many were durable before.

    torn_wal: share of the last transaction's bytes that reached the disk. torn_pages: share of what the kept pages
    have behind their last commit that did. leftover: an incomplete temporary manifest is left.
    """

    batches: int
    torn_wal: float = 1.0
    torn_pages: float = 1.0
    leftover: bool = False


GUARDED = replace(rule_for(), guards=Guards(max_pages=3, max_hosts=2, max_titles=1))
LENIENT = replace(GUARDED, guards=Guards(max_pages=4, max_hosts=0, max_titles=2))
UNGUARDED = replace(GUARDED, guards=NO_GUARDS)
CHANNELS = replace(rule_for("both"), guards=GUARDED.guards)

pages = st.builds(
    lambda host, url, story, version, short: prepared(
        f"http://site{host}/{url}", story, version=version, reason="too short" if short else None
    ),
    st.integers(0, 2),
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from([0, 0, 0, 1, 3]),
    st.sampled_from([False] * 5 + [True]),
)
streams = st.lists(st.tuples(pages, st.integers(0, 40).map(lambda n: b"%016d" % n)), min_size=1, max_size=24)
shares = st.floats(0, 1, exclude_max=True)
crashes = st.builds(
    Crash, st.integers(0, 8), st.one_of(st.just(1.0), shares), st.one_of(st.just(1.0), shares), leftover=st.booleans()
)


def opened(folder: Path, snapshot_every: int, rule: MatchRule | None = GUARDED) -> State:
    """The state in `folder`; by default with guards that trigger after three copies."""
    folder.mkdir(exist_ok=True)
    return State(folder, SPACE_ID, SPACE, rule, StateSettings(layout=LAYOUT, snapshot_every=snapshot_every))


def decider_state_of(state: State) -> tuple[DeciderState, list[Entry]]:
    """All that later verdicts depend on, but for the times: entries, cells, window, host text and guards.

    A minute may pass between two runs.
    """
    found = state._decider.state()
    timeless = replace(found, expiry=replace(found.expiry, times=b""))
    return timeless, list(state._decider.rows().entries())


def fed(state: State, stream: Sequence[Delivery]) -> list[Verdict]:
    """The verdicts on `stream`, batch by batch."""
    batches = [stream[start : start + BATCH] for start in range(0, len(stream), BATCH)]
    return [verdict for batch in batches for verdict in state.decide(batch)]


def image_after_crash(folder: Path, stream: Sequence[Delivery], crash: Crash, every: int) -> tuple[Path, list[Verdict]]:
    """Return the disk content when a run on `folder` dies at `crash`, and the verdicts returned before."""
    state = opened(folder, every)
    wal = folder / f"{JOURNAL_FILE}-wal"
    given_out = fed(state, stream[: crash.batches * BATCH])
    before = wal.stat().st_size if wal.exists() else 0
    durable = state.journal.sequence
    rest = stream[crash.batches * BATCH :][:BATCH]
    state.decide(rest)  # these verdicts are lost: the run dies before it returns them
    assert state._commits is not None
    state._commits.wait()  # a copy of files that change is no image; `test_kills` kills commits
    image = folder.with_name("image")
    shutil.copytree(folder, image)
    state.close()
    covered = read_manifest(image / PAGES_FOLDER).sequence > durable  # a commit comes after the batch is durable
    _tear(image, before, replace(crash, torn_wal=1.0) if covered else crash)
    return image, given_out


def _tear(image: Path, wal_bytes_before: int, crash: Crash) -> None:
    wal, pages = image / f"{JOURNAL_FILE}-wal", image / PAGES_FOLDER
    content = wal.read_bytes()
    wal.write_bytes(content[: wal_bytes_before + int((len(content) - wal_bytes_before) * crash.torn_wal)])
    (image / f"{JOURNAL_FILE}-shm").unlink(missing_ok=True)  # shared memory does not survive a machine's crash
    for segment in read_manifest(pages).segments:
        for name, label in segment.files.items():
            path = pages / f"{segment.number:05d}-{segment.generation}.{name}"
            if path.exists():
                size = label.length + int((path.stat().st_size - label.length) * crash.torn_pages)
                os.truncate(path, size)
    if crash.leftover:
        (pages / MANIFEST).with_suffix(".tmp").write_bytes(b"{ but no more of it")


def live_sequences(state: State) -> list[int]:
    """The sequences of the live entries."""
    return [sequence for sequence in range(state.journal.sequence + 1) if state._decider.holds(sequence)]


@settings(max_examples=60, deadline=None)
@given(streams, crashes, st.sampled_from([1, 4, 1000]))
def test_a_resumed_run_gives_the_verdicts_of_one_run(stream: list[Delivery], crash: Crash, every: int) -> None:
    """After a crash anywhere, repeating the stream gives the verdicts and the state of an uninterrupted run."""
    with tempfile.TemporaryDirectory() as name:
        whole = opened(Path(name) / "whole", every)
        expected, expected_state = fed(whole, stream), decider_state_of(whole)
        whole.close()

        image, given_out = image_after_crash(Path(name) / "state", stream, crash, every)
        assert given_out == expected[: len(given_out)]
        resumed = opened(image, every)
        assert fed(resumed, stream) == expected
        assert decider_state_of(resumed) == expected_state
        resumed.close()


@settings(max_examples=30, deadline=None)
@given(streams, st.lists(st.integers(0, 8), max_size=4), st.data())
def test_any_openings_and_retractions_give_one_history(
    stream: list[Delivery], openings: list[int], data: st.DataObject
) -> None:
    """Reopening between batches changes no verdict, also with retractions and changes of rule in between."""
    with tempfile.TemporaryDirectory() as name:
        steady, moved = opened(Path(name) / "steady", 1000), opened(Path(name) / "moved", 2)
        rules = iter(
            data.draw(st.lists(st.sampled_from([None, None, GUARDED, LENIENT, UNGUARDED, CHANNELS]), max_size=4))
        )
        for number in range(0, len(stream), BATCH):
            batch = stream[number : number + BATCH]
            verdicts = steady.decide(batch)
            assert moved.decide(batch) == verdicts
            live = live_sequences(steady)
            if live and data.draw(st.booleans()):
                target = data.draw(st.sampled_from(live))
                assert steady.retract(target) == moved.retract(target)
            if number // BATCH in openings:
                rule = next(rules, None)
                if rule is not None:
                    steady.close()
                    steady = opened(Path(name) / "steady", 1000, rule)
                moved.close()
                moved = opened(Path(name) / "moved", 2, rule)
                assert decider_state_of(moved) == decider_state_of(steady)
        steady.close()
        moved.close()
