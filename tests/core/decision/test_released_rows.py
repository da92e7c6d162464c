"""Rows that left the index leave no memory behind, and no verdict changes by that."""

from collections import Counter

import pytest

from dedup_service.core.decision.candidates import LocalCandidates
from dedup_service.core.decision.decider import Decider
from dedup_service.core.decision.entry_tables import EntryTables
from dedup_service.core.index.row_words import PAGE_ROWS
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from tests.core.decision.crowded import Run, page_at

LAYOUT = IndexLayout(slots=2, window=64)


class Bounded(Run):
    """A run that lets pages expire. tables: None for those that the candidates build."""

    def __init__(self, keep: Keep, tables: EntryTables | None = None) -> None:
        super().__init__(rule_for(), LAYOUT)
        self.candidates = LocalCandidates(rule_for(), layout=LAYOUT, tables=tables)
        self.decider = Decider(rule_for(), "space", self, candidates=self.candidates, overrides=self.overrides)
        self.decider.expiry.keep = keep

    def sizes(self) -> dict[str, int]:
        """The bytes of memory of each table and of the store."""
        return {**self.candidates.tables.sizes(), "rows": self.candidates.store.size_bytes}


@pytest.mark.parametrize("keep", [Keep(max_pages=30), Keep()], ids=["expiry", "updates"])
def test_tables_stay_as_large_while_rows_come_and_go(keep: Keep) -> None:
    """Also where updates alone remove them; the decisions are those of tables that give nothing back."""
    bounded, reference = Bounded(keep), Bounded(keep, EntryTables(LAYOUT))
    kinds: Counter[str] = Counter()
    sizes = []
    for start in range(0, 8_000, 125):
        pages = [page_at(seed) for seed in range(start, start + 125)]
        decisions = bounded.decide(pages, batch=True)
        assert decisions == reference.decide(pages, batch=True)
        kinds.update(decision.verdict.kind.value for decision in decisions)
        sizes.append(bounded.sizes())
    assert min(kinds[kind] for kind in ("unique", "duplicate", "unchanged", "updated")) > 50
    assert kinds["unique"] + kinds["updated"] > 5 * PAGE_ROWS
    first, last = ({name: max(size[name] for size in some) for name in sizes[0]} for some in (sizes[:16], sizes[16:]))
    assert {name: size for name, size in last.items() if size > 1.1 * first[name]} == {}
    assert last["sieves"] < reference.sizes()["sieves"]
