"""Pages of a batch that were announced together, and how far deciding them is."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entry_rows import BODY_HASH, INDEXED
from dedup_service.core.decision.host_text import LearnedPages
from dedup_service.core.decision.page_columns import PageColumns
from dedup_service.core.evidence.packed import term_bytes

_JUDGED = np.uint8(BODY_HASH | INDEXED)


@dataclass(slots=True)
class AnnouncedPages:
    """Sequences, hashes of URLs and hosts, and what hosts' text needs, of pages in their order.

    stops: bool[n], those that are decided by themselves, such as those that cannot be judged. page: number of the
    present one. done: how many are decided. learned: from how many of them was learned.
    """

    sequences: list[int]
    urls: list[int]
    hosts: list[int]
    learnable: LearnedPages
    stops: npt.NDArray[np.bool_]
    page: int = -1
    done: int = 0
    learned: int = 0

    @classmethod
    def of(cls, columns: PageColumns) -> Self:
        """Return pages of which none is decided."""
        evidence, rows = columns.evidence, columns.rows
        pairs = zip(columns.packed, evidence.counts.tolist(), strict=True)
        terms = [term_bytes(packed, count) if count else b"" for packed, count in pairs]
        learnable = LearnedPages.of(rows["host"], terms, columns.keys, evidence.sentences, evidence.counts)
        stops = (rows["flags"] & _JUDGED) != _JUDGED
        return cls(rows["sequence"].tolist(), rows["url_hash"].tolist(), rows["host"].tolist(), learnable, stops)

    @property
    def is_at_end(self) -> bool:
        """Whether there is no page behind the present one."""
        return self.page + 1 == len(self.sequences)

    @property
    def url(self) -> int:
        """Hash of the present page's URL."""
        return self.urls[self.page]

    @property
    def host(self) -> int:
        """Hash of the present page's host."""
        return self.hosts[self.page]
