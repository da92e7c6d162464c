"""The window: what `tests/oracle` does not reach, many pairs and memory."""

import numpy as np
import pytest

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.page_columns import PageColumns
from dedup_service.core.decision.window import Window
from dedup_service.core.evidence.overlap import NONE_COMMON
from dedup_service.core.evidence.packed import Evidence, pack_evidence
from dedup_service.core.text.normalise import letters

SENTENCES = [
    "the harbour opened on monday ",
    "two ferries ran aground at night ",
    "大桥下月通车全长四千米",
    "nobody paid ",
]


def evidence_of(parts: tuple[int, ...]) -> bytes:
    """Evidence of some sentences."""
    text = "".join(SENTENCES[part] for part in parts)
    return pack_evidence("", text, letters(text), b"S12345678")


EVIDENCE = [evidence_of(parts) for parts in [(0, 1), (0, 1, 3), (0, 2), (2,), (0, 1, 2), (3,), (1,), ()]]
EVIDENCE += [b"", b"junk"]


def add(window: Window, *entries: Entry) -> None:
    """Keep pages, one batch each."""
    for entry in entries:
        window.announce(PageColumns.of_entries([entry]))
        window.keep(0)
        window.finish()


def found_by(window: Window, page: Entry, min_jaccard: float) -> list[int]:
    """The sequences of the live entries that the window finds for a page, which is not kept."""
    columns = PageColumns.of_entries([page])
    window.announce(columns)
    places = window.compare(columns.marks, min_jaccard, (None, None)).places
    found = [entry.sequence for place in places.tolist() if (entry := window.at(place)) is not None]
    window.finish()
    return found


def test_more_is_found_than_there_is_room_for_at_first() -> None:
    """A batch of 300 copies on 300 copies: 135,000 pairs, all of them found."""
    window = Window()
    entries = [Entry(at, 5, None, None, 1, ordinal=at, evidence=EVIDENCE[0]) for at in range(600)]
    add(window, *entries[:300])
    columns = PageColumns.of_entries(entries[300:])
    window.announce(columns)
    compared = window.compare(columns.marks, 0.5, (0, None))
    assert np.diff(compared.offsets).tolist() == compared.passed.tolist() == list(range(300, 600))
    assert compared.places.tolist() == [place for page in range(300, 600) for place in range(page)]
    assert compared.by_sieve.all()
    assert compared.by_distance.all()
    assert window.similar(compared.places, Evidence(EVIDENCE[3]), NONE_COMMON, 0.5).tolist() == []
    window.finish()
    assert len(window) == 300


@pytest.mark.parametrize("size", [1, 64, 65, 400])
def test_its_memory_is_that_of_a_window(size: int) -> None:
    """A window through which many pages go takes a few times the memory of those that it has."""
    window = Window()
    for ordinal in range(5 * size + 200):
        window.settle(ordinal, [b""] * len(window.unsettled(ordinal - size)))
        window.leave(ordinal - size)
        add(window, Entry(ordinal, None, None, None, 1, ordinal=ordinal, evidence=EVIDENCE[ordinal % 4]))
    assert len(window) == size
    assert len(window._marks) == len(window._packed) <= max(64, 4 * size + 4)
    expected = [at for at in range(ordinal - size + 1, ordinal + 1) if at % 4 == 3]
    assert found_by(window, Entry(-1, None, None, None, 1, evidence=EVIDENCE[3]), 1.0) == expected
    assert found_by(window, Entry(-1, None, None, None, 1), 0.0) == []


def test_evidence_of_entries_that_left_is_not_kept() -> None:
    """Their places stay until the arrays are moved, thousands of pages later; their bytes do not."""
    window = Window()
    first = Entry(5, 1, 1, None, 1, True, bytes(EVIDENCE[0]) + b" ", ordinal=1)
    add(window, first)
    window.settle(0, [b"path of its own" * 2])
    held = sum(len(part) for part in (*window._packed, *window._keys))
    window.leave(1)
    window.announce(PageColumns.of_entries([]))
    window.finish()
    assert held
    assert not any((*window._packed, *window._keys))
