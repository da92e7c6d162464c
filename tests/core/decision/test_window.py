"""The window: what `tests/oracle` does not reach, many pairs."""

import numpy as np

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
