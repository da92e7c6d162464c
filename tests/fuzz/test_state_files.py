"""Files of a state folder and profiles: any bytes are read, or refused with the error that each reader documents."""

import struct
import zlib
from contextlib import suppress
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import PageStore, StoreLabel, read_commit, read_manifest
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.profiles import PROFILES, parse_profile, profile_text
from dedup_service.runtime.kafka.state.deciding_state import decode_deciding_state, encode_deciding_state
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes
from dedup_service.runtime.store.decider_state import UnreadableStateError, decode_state, encode_state
from dedup_service.runtime.store.errors import ForeignStoreError, StoreDamagedError
from dedup_service.runtime.store.page_files import MANIFEST, open_or_create
from tests.fuzz.budget import within
from tests.fuzz.examples import fuzzed
from tests.fuzz.mutation import mutated, mutated_text
from tests.runtime.kafka.state.test_deciding_state import deciders, replica_states

LABEL = StoreLabel("log", "space")
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
START = 20
"""Bytes of a manifest before its header: magic, version, length and checksum of the header."""
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


def check_manifest(header: bytes, folder: Path) -> None:
    """What must hold for any manifest whose checksum fits, which a fault of our own may write."""
    start = b"twinsiev" + struct.pack("<3I", 1, len(header), zlib.crc32(header))
    (folder / MANIFEST).write_bytes(start + header)
    with within(header):
        for read in (read_manifest, read_commit):
            with suppress(StoreDamagedError, ForeignStoreError):
                read(folder)
        with suppress(StoreDamagedError, ForeignStoreError):
            PageStore.open(folder, LABEL, writable=False).close()


def check_state(value: bytes) -> None:
    """What must hold for any bytes of a state."""
    with within(value):
        with suppress(UnreadableStateError):
            decode_deciding_state(value)
        try:
            state = decode_state(value)
        except UnreadableStateError:
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
def test_any_file_is_a_manifest_or_refused(data: st.DataObject, tmp_path: Path) -> None:
    """Also one whose checksum fits, which a fault of our own may write."""
    open_or_create(tmp_path, LABEL).close()
    content = (tmp_path / MANIFEST).read_bytes()
    header = content[START : START + int.from_bytes(content[12:16], "little")]
    check_manifest(data.draw(mutated(st.just(header), PIECES)), tmp_path)
    (tmp_path / MANIFEST).unlink()


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
