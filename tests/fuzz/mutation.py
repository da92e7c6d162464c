"""Strategies: valid input with a few changes of bytes, and hostile units joined, nested and changed."""

import json
from collections.abc import Sequence

import msgspec
from hypothesis import strategies as st

from tests.core.hostile import Unit, units_of

_KINDS = ("delete", "insert", "replace", "repeat", "move", "cut")
_NUMBERS = [0, 1, -1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, -(2**63) - 1, 0.5, 1e308]
VALUES = st.recursive(
    st.sampled_from([None, True, False, *_NUMBERS])
    | st.text(max_size=8)
    | st.sampled_from(["", "-1", "0x", "=", "\0"]),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=4), values, max_size=3),
    max_leaves=6,
)
"""Values of JSON, of any type and of sizes at which numbers change theirs."""

_Edit = tuple[str, int, int, bytes]


def mutated(valid: st.SearchStrategy[bytes], pieces: Sequence[bytes] = ()) -> st.SearchStrategy[bytes]:
    """Return `valid` with up to six changes. pieces: what a change may insert, besides a few random bytes."""
    inserted = st.binary(max_size=8) | st.sampled_from(pieces) if pieces else st.binary(max_size=8)
    edits = st.tuples(st.sampled_from(_KINDS), st.integers(0, 1 << 16), st.integers(0, 64), inserted)
    return st.builds(_edited, valid, st.lists(edits, max_size=6))


def mutated_text(valid: st.SearchStrategy[str], pieces: Sequence[str] = ()) -> st.SearchStrategy[str]:
    """As `mutated`, for text; lone surrogates may occur, as in a caller's string."""
    encoded = mutated(valid.map(_bytes), [_bytes(piece) for piece in pieces])
    return encoded.map(lambda data: data.decode("utf-8", "surrogateescape"))


def altered(valid: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Return a JSON object, or a map of MessagePack, like `valid`; up to three fields are others, or new."""
    changes = st.lists(st.tuples(st.integers(0, 99), VALUES), min_size=1, max_size=3)
    return st.builds(_altered, valid, changes)


def hostile(kind: str, most: int = 3_000) -> st.SearchStrategy[str | bytes]:
    """Return up to four hostile units of a kind, each of up to `most` characters, one after or inside the other."""
    unit = st.tuples(st.sampled_from(units_of(kind)), st.integers(1, most))
    return st.builds(_joined, st.lists(unit, min_size=1, max_size=4), st.booleans())


def _edited(data: bytes, edits: Sequence[_Edit]) -> bytes:
    for kind, position, size, piece in edits:
        at = position % (len(data) + 1)
        part = data[at : at + size]
        if kind == "delete":
            data = data[:at] + data[at + size :]
        elif kind == "insert":
            data = data[:at] + piece + data[at:]
        elif kind == "replace":
            data = data[:at] + piece + data[at + len(piece) :]
        elif kind == "repeat":
            data = data[:at] + part * (1 + size) + data[at:]
        elif kind == "move":
            data = part + data[:at] + data[at + size :]
        else:
            data = data[:at]
    return data


def _altered(data: bytes, changes: Sequence[tuple[int, object]]) -> bytes:
    packed = data[0] >= 0x80  # a map of MessagePack
    fields = msgspec.msgpack.decode(data) if packed else json.loads(data)
    names = [*fields, "later"]
    for place, value in changes:
        fields[names[place % len(names)]] = value
    try:
        return msgspec.msgpack.encode(fields) if packed else json.dumps(fields).encode()
    except (OverflowError, UnicodeEncodeError):  # JSON can say what MessagePack cannot
        return data


def _joined(units: Sequence[tuple[Unit, int]], nested: bool) -> str | bytes:
    made = [unit.make(size) for unit, size in units]
    if any(isinstance(part, bytes) for part in made):
        return b"".join(_bytes(part) if isinstance(part, str) else part for part in made)
    texts = [part for part in made if isinstance(part, str)]
    if not nested or len(texts) == 1:
        return "".join(texts)
    outer, *inner = texts
    return outer[: len(outer) // 2] + "".join(inner) + outer[len(outer) // 2 :]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
