"""The settled entries of a decider on disk answer as those in memory do."""

import random
from pathlib import Path

import numpy as np

from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.runtime.store.stored_entries import StoredEntries

from .pages import LABEL, pages


def opened(folder: Path) -> StoredEntries:
    """Return entries with small segments."""
    return StoredEntries.open(folder, LABEL, rule_for(), IndexLayout(), lambda _extra: (), segment_rows=256)


def test_a_view_says_whether_it_has_a_page_and_reads_few_rows(tmp_path: Path) -> None:
    """Pages that came after it was taken are not among them, and removed ones are not any more."""
    entries, chosen = opened(tmp_path), random.Random(1)
    rows = pages(1, 3000).entries
    rows.rows["sequence"] = sequences = np.cumsum(1 + np.arange(3000) % 3)
    numbers = entries.append(rows)
    held = entries.held()
    entries.append(pages(2, 10, first=int(sequences[-1]) + 1).entries)
    gone = numbers[np.random.default_rng(1).random(3000) < 0.4]
    entries.remove(gone)
    live = set(sequences[~np.isin(numbers, gone)].tolist())
    sought = [*chosen.choices(range(int(sequences[-1]) + 20), k=200), -1, int(sequences[-1]) + 1]
    before = entries.pages.counts.rows
    assert [held.has(sequence) for sequence in sought] == [sequence in live for sequence in sought]
    assert entries.pages.counts.rows - before <= 2 * 12 * len(sought)
    entries.close()
