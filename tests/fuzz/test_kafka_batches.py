"""Compressed batches: what a reader unpacks is bounded, whatever a producer packed."""

import gzip
import zlib

import zstandard
from hypothesis import given
from hypothesis import strategies as st
from kafka import codec

from dedup_service.runtime.kafka.client.unpacking import _gunzip, _unlz4, _unzstd
from tests.fuzz.budget import Budget, within
from tests.fuzz.examples import fuzzed
from tests.fuzz.mutation import mutated

UNPACK = {"gzip": _gunzip, "lz4": _unlz4, "zstd": _unzstd}
PACK = {"gzip": gzip.compress, "lz4": codec.lz4_encode, "zstd": codec.zstd_encode}
FAULTS = (zlib.error, EOFError, RuntimeError, zstandard.ZstdError)
"""What the client's own decoders raise for damaged bytes, which brokers do not accept from a producer."""
UNPACKED = Budget(mebibytes=160)
"""Windows of zstd are up to 128 MiB."""


def check(kind: str, packed: bytes, most: int) -> None:
    """What must hold for any bytes under any limit."""
    with within(packed, budget=UNPACKED):
        try:
            unpacked = UNPACK[kind](packed, most)
        except FAULTS:
            return
    assert len(unpacked) <= most


@fuzzed(20)
@given(kind=st.sampled_from([*UNPACK]), size=st.integers(0, 1 << 22), most=st.integers(0, 1 << 16), data=st.data())
def test_any_bytes_unpack_to_at_most_the_limit(kind: str, size: int, most: int, data: st.DataObject) -> None:
    """Zeros, which pack best, and the same damaged."""
    packed = PACK[kind](bytes(size))
    assert UNPACK[kind](packed, size + 1) == bytes(size)
    check(kind, packed, most)
    check(kind, data.draw(mutated(st.just(packed))), most)
