"""Files of a state folder and profiles: any bytes are read, or refused with the error that each reader documents."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.profiles import PROFILES, parse_profile, profile_text
from dedup_service.runtime.embedded.snapshot import (
    SNAPSHOT_VERSION,
    SnapshotLabel,
    UnreadableSnapshotError,
    decode_state,
    encode_state,
    read_label,
    read_snapshot,
    write_snapshot,
)
from dedup_service.runtime.kafka.state.local_state import (
    UnreadableDecidingStateError,
    decode_deciding_state,
    encode_deciding_state,
)
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes
from tests.fuzz.budget import within
from tests.fuzz.corpus.found import FOUND
from tests.fuzz.examples import fuzzed
from tests.fuzz.mutation import mutated, mutated_text
from tests.runtime.kafka.state.test_deciding_state import deciders, replica_states

PIECES = (
    b"\x00",
    b"\xff",
    b"\xc0",
    b"\xdf" + b"\xff" * 4,
    b"\xdd\xff\xff\xff\xff",
    b"\x81",
    b"\x91" * 3_000,
    b"\xcf" + b"\xff" * 8,
)
ROWS = EntryRows.from_entries([Entry(at, at, None, at, at, evidence=b"e" * at) for at in range(1, 4)])
LABEL = SnapshotLabel(
    version=SNAPSHOT_VERSION, journal="j", space_id="s", sequence=3, tail="t", entries=len(ROWS),
    evidence_bytes=len(ROWS.evidence), extra_bytes=1,
)  # fmt: skip
TOML = (
    "[match]\n",
    "[[match]]\n",
    "[guards]\n",
    "name = 1\n",
    "jaccard = nan\n",
    "body = -1\n",
    "=",
    '"',
    "\\u0000",
    "[",
    "{",
    "9" * 30,
)


def check_profile(text: str) -> None:
    """What must hold for any text of a profile."""
    with within(text):
        try:
            rule = parse_profile(text)
        except ConfigurationError:
            return
        assert parse_profile(profile_text(rule)) == rule


def check_snapshot(content: bytes, path: Path) -> None:
    """What must hold for any file that a checksum calls whole."""
    path.write_bytes(content + xxhash.xxh3_128_digest(content))
    with within(content):
        read_label(path)
        try:
            snapshot = read_snapshot(path)
        except UnreadableSnapshotError:
            return
    assert sum(len(rows) for rows in snapshot.rows) == snapshot.label.entries
    assert sum(len(rows.evidence) for rows in snapshot.rows) == snapshot.label.evidence_bytes


def check_state(value: bytes) -> None:
    """What must hold for any bytes of a state."""
    with within(value):
        with suppress(UnreadableDecidingStateError):
            decode_deciding_state(value)
        try:
            state = decode_state(value)
        except UnreadableSnapshotError:
            pass
        else:
            assert decode_state(encode_state(state)) == state


@fuzzed(20)
@given(
    text=mutated_text(st.sampled_from([profile_text(PROFILES[name]) for name in ("balanced", "broad")]), TOML)
    | st.text()
)
def test_any_text_is_a_profile_or_a_clear_error(text: str) -> None:
    """Only ConfigurationError, and a profile is read as it was written."""
    check_profile(text)


@fuzzed(10)
@given(data=st.data())
def test_any_file_is_a_snapshot_or_refused(data: st.DataObject, tmp_path: Path) -> None:
    """Also one whose checksum fits, which a fault of our own may write."""
    path = tmp_path / "snapshot"
    write_snapshot(path, LABEL, [ROWS], b"x")
    check_snapshot(data.draw(mutated(st.just(path.read_bytes()[:-16]), (b"-", b"9", b"0", b"null", *PIECES))), path)


@fuzzed(10)
@given(value=mutated(deciders.map(encode_state), PIECES) | st.binary())
def test_any_bytes_are_a_state_or_refused(value: bytes) -> None:
    """Only the error that says to rebuild it."""
    check_state(value)


@fuzzed(10)
@given(value=mutated(replica_states.map(lambda state: encode_deciding_state(state, PendingOutcomes())), PIECES))
def test_any_bytes_are_the_state_of_a_service_or_refused(value: bytes) -> None:
    """Only the error that says to rebuild it."""
    check_state(value)


@pytest.mark.parametrize("arguments", FOUND["state_files"].values(), ids=FOUND["state_files"])
def test_states_that_fuzzing_found(arguments: tuple[Any, ...]) -> None:
    """Each showed a fault once."""
    check_state(*arguments)
