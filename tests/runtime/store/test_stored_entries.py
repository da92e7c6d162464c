"""The settled entries of a decider on disk answer as those in memory do."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np

from dedup_service.core.decision.candidates import LocalCandidates
from dedup_service.core.evidence.packed import Evidence, sketch_of
from dedup_service.core.evidence.sketch import SKETCH_BYTES
from dedup_service.core.index.cell_index import SIEVE_BYTES
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.runtime.store.stored_entries import StoredEntries
from tests.core.decision.announced import announced
from tests.core.decision.crowded import SENTENCES, page_of

from .pages import LABEL, pages


def opened(folder: Path) -> StoredEntries:
    """Return entries with small segments."""
    return StoredEntries.open(folder, LABEL, rule_for(), IndexLayout(), lambda _extra: (), segment_rows=256)


def with_another_sketch(page: PreparedPage, seed: int) -> PreparedPage:
    """Return a page of which only the first bytes of the sketch, those of the sieve, are as before."""
    sketch = sketch_of(page.evidence, SKETCH_BYTES)
    other = sketch[:SIEVE_BYTES] + random.Random(seed).randbytes(SKETCH_BYTES - SIEVE_BYTES)
    return replace(page, evidence=page.evidence.replace(sketch, other))


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


def test_the_row_of_an_entry_is_read_only_if_its_sketch_is_close(tmp_path: Path) -> None:
    """Of what the cells find at random, the disk is asked for the evidence alone, which takes one read and not two."""
    entries, sentences = opened(tmp_path), SENTENCES[:6]
    candidates = LocalCandidates(rule_for(), store=entries, tables=entries.tables, layout=IndexLayout(window=1))
    original = page_of("http://original/", sentences)
    unlike = [with_another_sketch(page_of(f"http://unlike/{at}", sentences), at) for at in range(6)]
    for ordinal, page in enumerate([*unlike, original, page_of("http://last/", SENTENCES[9:])]):
        with announced(candidates, [(ordinal, page)], ordinal):
            candidates.begin(ordinal)
            candidates.add()
    before = replace(entries.pages.counts)
    with announced(candidates, [(8, page_of("http://copy/", sentences))], 8):
        candidates.begin(8)
        found = candidates.find(Evidence(original.evidence))
        read = entries.pages.counts
        assert [entry.sequence for entry in found] == [6]
        assert (read.spans - before.spans, read.rows - before.rows) == (7, 1)
    entries.close()
