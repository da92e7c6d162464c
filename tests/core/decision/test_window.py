"""The window, against a list of its pages."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.window import Window
from dedup_service.core.evidence.columns import similar
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
PAGES = [number for number, evidence in enumerate(EVIDENCE) if Evidence(evidence).shingles]
BOUNDS = [0.0, 0.15, 0.4, 0.7, 1.0]


@dataclass(frozen=True)
class Kept:
    """A page of the window."""

    sequence: int
    ordinal: int
    evidence: bytes


def equal_bits(one: bytes, other: bytes, size: int) -> float:
    """Share of equal bits in the first `size` bytes of two sketches."""
    a, b = (int.from_bytes(Evidence(packed).sketch[:size], "little") for packed in (one, other))
    return 1 - (a ^ b).bit_count() / (8 * size)


class History(RuleBasedStateMachine):
    """Any history of pages that come, are removed, and leave."""

    def __init__(self) -> None:
        super().__init__()
        self.window, self.kept, self.ordinal = Window(), list[Kept](), 0

    @rule(chosen=st.lists(st.sampled_from(range(len(EVIDENCE))), max_size=50), skipped=st.integers(0, 2))
    def add(self, chosen: list[int], skipped: int) -> None:
        for number in chosen:
            self.ordinal += 1 + skipped
            entry = Entry(5 * self.ordinal, None, None, None, 1, evidence=EVIDENCE[number], ordinal=self.ordinal)
            self.window.add(entry, Evidence(entry.evidence))
            if number in PAGES:
                self.kept.append(Kept(entry.sequence, entry.ordinal, entry.evidence))

    @precondition(lambda self: self.kept)
    @rule(data=st.data(), offset=st.sampled_from([0, 0, 1]))
    def remove(self, data: st.DataObject, offset: int) -> None:
        sequence = data.draw(st.sampled_from([page.sequence for page in self.kept])) + offset
        self.window.remove(sequence)
        self.kept = [page for page in self.kept if page.sequence != sequence]

    @rule(back=st.integers(-1, 90))
    def leave(self, back: int) -> None:
        self.window.leave(self.ordinal - back)
        self.kept = [page for page in self.kept if page.ordinal > self.ordinal - back]

    @rule(number=st.sampled_from(PAGES), min_jaccard=st.sampled_from(BOUNDS), common_sentences=st.integers(0, 2))
    def find(self, number: int, min_jaccard: float, common_sentences: int) -> None:
        evidence = EVIDENCE[number]
        passed = [page for page in self.kept if equal_bits(page.evidence, evidence, 16) >= 0.58]
        packed = Evidence(evidence)
        common = packed.sentence_values[:common_sentences]
        near = [page for page in passed if similar([Evidence(page.evidence)], packed, common, min_jaccard)]
        count, found = self.window.find(packed, common, min_jaccard)
        assert (count, found.tolist()) == (len(passed), [page.sequence for page in near])


History.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestHistory = History.TestCase


@given(st.permutations(range(12)), st.sampled_from(PAGES))
def test_the_answer_is_that_of_the_pages_that_are_left(order: list[int], number: int) -> None:
    """A window that lost pages finds what one finds that never had them."""
    entries = [Entry(at, None, None, None, 1, evidence=EVIDENCE[at % len(EVIDENCE)], ordinal=at) for at in range(24)]
    lost, without = Window(), Window()
    for entry in entries:
        lost.add(entry, Evidence(entry.evidence))
        if entry.sequence >= 12 or entry.sequence not in order[:5]:
            without.add(entry, Evidence(entry.evidence))
    for sequence in order[:5]:
        lost.remove(sequence)
    for window in (lost, without):
        window.leave(3)
    found = [window.find(Evidence(EVIDENCE[number]), NONE_COMMON, 0.15)[1].tolist() for window in (lost, without)]
    assert found[0] == found[1]


def test_an_empty_window_finds_nothing() -> None:
    """So does one whose pages all left, and one with pages without shingles alone."""
    page = Evidence(EVIDENCE[0])
    window = Window()
    assert window.find(page, NONE_COMMON, 0.0)[0] == 0
    window.add(Entry(1, None, None, None, 1, ordinal=1), Evidence(EVIDENCE[-1]))
    assert (len(window), window.find(page, NONE_COMMON, 0.0)[0]) == (0, 0)
    window.add(Entry(2, None, None, None, 1, ordinal=2), Evidence(EVIDENCE[0]))
    assert window.find(page, NONE_COMMON, 1.0)[1].tolist() == [2]
    window.leave(2)
    assert (len(window), window.find(page, NONE_COMMON, 0.0)[0]) == (0, 0)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1_000])
def test_its_memory_is_that_of_a_window(size: int) -> None:
    """A window through which many pages go takes a few times the memory of those that it has."""
    window = Window()
    for ordinal in range(5 * size + 200):
        window.leave(ordinal - size)
        window.add(Entry(ordinal, None, None, None, 1, ordinal=ordinal), Evidence(EVIDENCE[ordinal % 4]))
    assert len(window) == size
    assert len(window._sequences) <= max(64, 4 * size)
    expected = [at for at in range(ordinal - size + 1, ordinal + 1) if at % 4 == 3]
    assert window.find(Evidence(EVIDENCE[3]), NONE_COMMON, 1.0)[1].tolist() == expected
    assert window.find(Evidence(b""), NONE_COMMON, 0.0)[0] == 0
