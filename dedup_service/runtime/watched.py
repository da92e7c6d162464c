"""What the guards have seen, from a journal: the snapshot's part of it, and the pages after that.

The journal wrote down what each page that matched added (`detail`), so nothing is compared again: a fold over the
rows since guards are in force, a microsecond or two each. The snapshot's part is MessagePack of the memory's fields,
a version in front; one that cannot be read is made again from the log.
"""

import msgspec

from dedup_service.core.groups import Copy
from dedup_service.core.watch import Watch, WatchMemory
from dedup_service.runtime.log_reader import LogReader

__all__ = ["encode_watch", "watch_of_log"]

_VERSION = 1


class _Whole(msgspec.Struct):
    version: int
    watch: WatchMemory


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Whole)


def encode_watch(watch: Watch | None) -> bytes:
    """Return the bytes of a watch for a snapshot; b"" for none."""
    return b"" if watch is None else _encoder.encode(_Whole(_VERSION, watch.memory()))


def watch_of_log(log: LogReader, sequence: int, extra: bytes) -> Watch | None:
    """Return what the guards have seen at the end of `log`; None where no rule with guards is in force.

    extra: what a snapshot at `sequence` has of it, b"" without one.
    """
    since = log.guarded_since()
    if since is None:
        return None
    memory = _decoded(extra) if sequence >= since else None
    watch = Watch(memory)
    for kind, removes, detail in log.followed_after(since if memory is None else sequence):
        if kind == "page":
            watch.follow(None if detail is None else Copy.unpack(detail))
        if removes is not None:
            watch.left(removes)
    return watch


def _decoded(extra: bytes) -> WatchMemory | None:
    try:
        whole = _decoder.decode(extra)
    except msgspec.MsgspecError:
        return None
    return whole.watch if whole.version == _VERSION else None
