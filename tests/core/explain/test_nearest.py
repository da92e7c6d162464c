"""The nearest kept pages, compared with a comparison of all."""

import pytest

from dedup_service._native import Entry, HostText, promising
from dedup_service.core.decision.decider import Decider
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.explain.nearest import nearest
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from tests.core.explain.pages import CHANGES, entry, prepared, prepared_text, sentence


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    """The entries of thirty pages, and of their edits."""
    edits = ((seed, change) for seed in range(1, 31) for change in CHANGES)
    return [entry(at, prepared(seed, change)) for at, (seed, change) in enumerate(edits, 1)]


class Names:
    """Names nothing: entries are not decided."""

    def name(self, sequence: int) -> tuple[str, str]:
        raise KeyError(sequence)


def keeping(entries: list[Entry]) -> Decider:
    """A filter that has these entries: most of them settled, the latest in the window."""
    decider = Decider(rule_for(), "space", Names(), layout=IndexLayout(window=len(entries) // 3))
    decider.enter(entries)
    return decider


def jaccard(one: Entry, other: Entry) -> float:
    """The Jaccard similarity by evidence."""
    return Similarity(Evidence(one.evidence), Evidence(other.evidence)).jaccard


def test_pages_with_much_in_common_are_found_in_order(entries: list[Entry]) -> None:
    """It is the best of all others by estimated similarity, without the page itself."""
    everything = keeping(entries).held()
    for page in entries[::9]:
        others = sorted((at for at in entries if at.sequence != page.sequence), key=lambda at: -jaccard(at, page))
        expected = [round(jaccard(at, page), 4) for at in others[:4] if jaccard(at, page) > 0.2]
        found = nearest(everything, page, 4, HostText())
        assert [round(jaccard(at, page), 4) for at in found][: len(expected)] == expected
        assert page.sequence not in {at.sequence for at in found}


def test_removed_pages_are_not_found(entries: list[Entry]) -> None:
    """A view has the entries of its time, an empty one none."""
    decider, page = keeping(entries[:20]), entries[0]
    view = decider.held()
    before = nearest(view, page, 3, HostText())
    for removed in before:
        decider.drop(removed.sequence)
    after = nearest(decider.held(), page, 3, HostText())
    assert not {at.sequence for at in before} & {at.sequence for at in after}
    assert len(after) == 3
    assert nearest(HeldEntries(), page, 3, HostText()) == []


def test_host_text_brings_no_page_nearer() -> None:
    """A page with the same long frame comes after one with half of the article, once the frame is known."""
    frame = [sentence(seed) for seed in range(60)]
    article = [sentence(seed) for seed in range(100, 120)]
    texts = [[*frame, *article], [*frame, *map(sentence, range(200, 220))], article[:12]]
    page, framed, half = (entry(at, prepared_text(at, ". ".join(text))) for at, text in enumerate(texts))
    everything, host_text = keeping([page, framed, half]).held(), HostText()
    assert [at.sequence for at in nearest(everything, page, 1, host_text)] == [framed.sequence]
    sentences = Evidence(entry(9, prepared_text(9, ". ".join(frame))).evidence).sentence_values
    for title in range(5):
        host_text.learn(page.host, [title], b"", sentences)
    assert [at.sequence for at in nearest(everything, page, 1, host_text)] == [half.sequence]


def test_a_view_knows_its_live_entries(entries: list[Entry]) -> None:
    """Entries are known by sequence; a removed one is not live."""
    decider = keeping(entries[:5])
    decider.drop(entries[2].sequence)
    assert [decider.held().has(at.sequence) for at in entries[:6]] == [True, True, False, True, True, False]


def test_the_most_promising_are_near_by_either_measure(entries: list[Entry]) -> None:
    """By bits of a fingerprint, or by equal bits of the sketches beyond chance; entries without both come last."""
    page = Entry(1, 0, None, None, 0, evidence=entries[0].evidence)
    near, alike = Entry(2, 0b111, 5, None, 0), Entry(3, None, 0, None, 0, evidence=entries[0].evidence)
    others = [Entry(4, (1 << 30) - 1, None, None, 0), Entry(5, None, None, None, 0), Entry(6, None, 1, None, 0)]
    assert promising([*others, near, alike], page, 9) == [4, 3, 0, 1, 2]
    assert promising([*others, near, alike], page, 1) == [4]
