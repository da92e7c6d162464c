"""The nearest kept pages, compared with a comparison of all."""

import numpy as np
import pytest

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.decision.entry_store import HeldEntries, HeldValues, MemoryStore
from dedup_service.core.decision.host_text import TITLES, HostText
from dedup_service.core.evidence.packed import Evidence, equal_sketch_bits
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.explain.nearest import nearest
from tests.core.explain.pages import CHANGES, entry, prepared, prepared_text, sentence


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    """The entries of thirty pages, and of their edits."""
    edits = ((seed, change) for seed in range(1, 31) for change in CHANGES)
    return [entry(at, prepared(seed, change)) for at, (seed, change) in enumerate(edits, 1)]


def stored(entries: list[Entry]) -> MemoryStore:
    """A store with these entries, in rows from 0."""
    store = MemoryStore()
    store.append(EntryRows.from_entries(entries))
    return store


def held(entries: list[Entry]) -> HeldEntries:
    """A view of entries, as a filter has them: some settled, the latest in the window."""
    settled = len(entries) * 2 // 3
    return HeldEntries((*stored(entries[:settled]).held().parts, HeldValues(tuple(entries[settled:]))))


def jaccard(one: Entry, other: Entry) -> float:
    """The Jaccard similarity by evidence."""
    return Similarity(Evidence(one.evidence), Evidence(other.evidence)).jaccard


def test_pages_with_much_in_common_are_found_in_order(entries: list[Entry]) -> None:
    """It is the best of all others by estimated similarity, without the page itself."""
    everything = held(entries)
    for page in entries[::9]:
        others = sorted((at for at in entries if at.sequence != page.sequence), key=lambda at: -jaccard(at, page))
        expected = [round(jaccard(at, page), 4) for at in others[:4] if jaccard(at, page) > 0.2]
        found = nearest(everything, page, 4, HostText())
        assert [round(jaccard(at, page), 4) for at in found][: len(expected)] == expected
        assert page.sequence not in {at.sequence for at in found}


def test_removed_pages_are_not_found(entries: list[Entry]) -> None:
    """Their rows are still there; an empty view has no nearest page."""
    store, page = stored(entries[:20]), entries[0]
    before = nearest(store.held(), page, 3, HostText())
    store.remove(np.array([entry_.sequence - entries[0].sequence for entry_ in before]))
    after = nearest(store.held(), page, 3, HostText())
    assert not {at.sequence for at in before} & {at.sequence for at in after}
    assert len(after) == 3
    assert nearest(HeldEntries(), page, 3, HostText()) == []


def test_host_text_brings_no_page_nearer() -> None:
    """A page with the same long frame comes after one with half of the article, once the frame is known."""
    frame = [sentence(seed) for seed in range(60)]
    article = [sentence(seed) for seed in range(100, 120)]
    texts = [[*frame, *article], [*frame, *map(sentence, range(200, 220))], article[:12]]
    page, framed, half = (entry(at, prepared_text(at, ". ".join(text))) for at, text in enumerate(texts))
    everything, host_text = held([page, framed, half]), HostText()
    assert nearest(everything, page, 1, host_text) == [framed]
    for title in range(TITLES):
        host_text.follow(
            page.host, title, Evidence(entry(9, prepared_text(9, ". ".join(frame))).evidence).sentence_values
        )
    assert nearest(everything, page, 1, host_text) == [half]


def test_a_view_knows_its_live_entries(entries: list[Entry]) -> None:
    """Entries are known by sequence; a removed one is not live."""
    store = stored(entries[:5])
    store.remove(np.array([2]))
    assert [store.held().has(at.sequence) for at in entries[:6]] == [True, True, False, True, True, False]


def test_equal_bits_are_counted_for_every_page(entries: list[Entry]) -> None:
    """A page without evidence has none."""
    packed = [entry_.evidence for entry_ in entries] + [b"", b"junk"]
    sizes = np.array([len(piece) for piece in packed])
    starts = np.cumsum(sizes) - sizes
    for page in entries[::40]:
        ours = Evidence(page.evidence).sketch[:32]
        found = equal_sketch_bits(
            np.frombuffer(b"".join(packed), np.uint8), starts, sizes, np.frombuffer(ours, np.uint8)
        )
        theirs = [Evidence(entry_.evidence).sketch[:32] for entry_ in entries]
        differing = [(int.from_bytes(ours) ^ int.from_bytes(bits)).bit_count() for bits in theirs]
        assert found.tolist() == [*(256 - bits for bits in differing), 0, 0]
