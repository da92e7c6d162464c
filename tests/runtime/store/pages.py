"""Pages for stores, made from a seed."""

from collections.abc import Sequence

import numpy as np

from dedup_service._native import StoreLabel
from dedup_service.core.decision.entry_rows import ROW, EntryRows

LABEL = StoreLabel("a log", "a space")


def pages(seed: Sequence[int] | int, count: int, first: int = 0, largest: int = 600) -> EntryRows:
    """Return `count` pages whose sequences begin at `first`, with up to `largest` bytes of evidence each."""
    generator = np.random.default_rng(seed)
    rows = np.zeros(count, ROW)
    for name in ROW.names or ():
        if name not in {"sequence", "evidence_bytes", "keys_bytes"}:
            rows[name] = generator.integers(0, 1 << 8 * min(ROW[name].itemsize, 7), count)
    rows["sequence"] = np.arange(first, first + count)
    rows["evidence_bytes"] = generator.integers(0, largest + 1, count)
    rows["keys_bytes"] = rows["evidence_bytes"] // 5
    rows["flags"] |= 1
    return EntryRows(rows, generator.bytes(int(rows["evidence_bytes"].sum())))
