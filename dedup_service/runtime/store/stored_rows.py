"""A row on disk: a row of a decider (ROW), and where its evidence, names and text are in their files.

STORED_ROW begins with the fields of ROW, so the first bytes of a stored row are a ROW. `NAME_at` is an offset in the
file of that name in the same segment; `evidence_bytes` is ROW's own field. `reserved` is 0.

EVIDENCE_SPAN repeats the fields of a row that say where its evidence is, in a file of their own. Most pieces of
evidence that a decider reads are dropped by their sketches, and for these the row is never read. 10 bytes a row stay in
the page cache where rows and evidence do not.

`StoredNames` are the strings of a page. They are stored as MessagePack of UTF-8 bytes; a lone surrogate, which pages
may contain, is kept. Zeros, which an erasure leaves, are no MessagePack array, so erased names are recognised.
"""

from dataclasses import dataclass

import msgspec
import numpy as np

from dedup_service.core.decision.entry_rows import ROW, EvidenceSpans, Spans

__all__ = [
    "BYTE_FILES",
    "EVIDENCE_SPAN",
    "FILES",
    "STORED_ROW",
    "EvidenceSpans",
    "Spans",
    "StoredNames",
    "pack_names",
    "unpack_names",
]

BYTE_FILES = ("evidence", "names", "texts")
"""The files of bytes of a segment; rows say where in them."""

FILES = ("rows", "spans", *BYTE_FILES)

_PLACES = (("evidence_at", "<u4"), ("names_at", "<u4"), ("names_bytes", "<u4"), ("texts_at", "<u4"))
_FIELDS = [(name, ROW[name].str) for name in ROW.names or ()]
STORED_ROW = np.dtype([*_FIELDS, *_PLACES, ("texts_bytes", "<u4"), ("reserved", "u1")])
"""88 bytes."""

EVIDENCE_SPAN = np.dtype([(name, STORED_ROW[name].str) for name in ("evidence_at", "evidence_bytes", "keys_bytes")])
"""10 bytes."""


@dataclass(frozen=True, slots=True)
class StoredNames:
    """The strings of a page."""

    id: str
    url: str
    title: str = ""


class _PackedNames(msgspec.Struct, array_like=True):
    """id: None if it equals the URL."""

    id: bytes | None
    url: bytes
    title: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_PackedNames)


def pack_names(names: StoredNames) -> bytes:
    """Return `names` as they are stored."""
    own_id = None if names.id == names.url else _encoded(names.id)
    return _encoder.encode(_PackedNames(own_id, _encoded(names.url), _encoded(names.title)))


def unpack_names(value: bytes) -> StoredNames | None:
    """Return stored names; None if they were erased or never given."""
    if not value or not value[0]:
        return None
    packed = _decoder.decode(value)
    url = _decoded(packed.url)
    return StoredNames(url if packed.id is None else _decoded(packed.id), url, _decoded(packed.title))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "surrogatepass")
