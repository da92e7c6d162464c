"""The window, against a list of its pages."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import entry_in
from dedup_service.core.decision.page_columns import PageColumns
from dedup_service.core.decision.window import Unsettled, Window
from dedup_service.core.evidence.columns import EvidenceColumns
from dedup_service.core.evidence.overlap import NONE_COMMON
from dedup_service.core.evidence.packed import Evidence, pack_evidence
from dedup_service.core.evidence.sketch import SKETCH_BYTES
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
BOUNDS = [0.0, 0.15, 0.4, 0.7, 1.0]
RADII = [(None, None), (3, None), (None, 0), (2, 7)]
FINGERPRINTS = [None, 0, 1, 0b111, 0xFF, (1 << 64) - 1]

pages = st.builds(
    lambda number, words, body, indexed: Entry(0, words, body, None, 1, indexed, EVIDENCE[number]),
    st.integers(0, len(EVIDENCE) - 1),
    st.sampled_from(FINGERPRINTS),
    st.sampled_from(FINGERPRINTS),
    st.booleans(),
)


def differing_bits(one: bytes, other: bytes, size: int) -> int:
    """How many of the first `size` bytes' bits of two sketches differ."""
    a, b = (int.from_bytes(Evidence(packed).sketch[:size], "little") for packed in (one, other))
    return (a ^ b).bit_count()


def passes_sieve(page: Entry, other: Entry) -> bool:
    """Whether at least 58% of the first 128 bits are equal, of two pages with shingles."""
    both = Evidence(page.evidence).shingles and Evidence(other.evidence).shingles
    return bool(both) and differing_bits(page.evidence, other.evidence, 16) <= 53


def is_close(page: Entry, other: Entry, min_jaccard: float) -> bool:
    """Whether their whole sketches say so."""
    share = differing_bits(page.evidence, other.evidence, SKETCH_BYTES) / (8 * SKETCH_BYTES)
    return max(0.0, 1 - 2 * share) >= min_jaccard


def is_near(page: Entry, other: Entry, radii: tuple[int | None, int | None]) -> bool:
    """Whether a fingerprint of both is within the radius of its channel."""
    values = zip((page.words, page.body), (other.words, other.body), radii, strict=True)
    return (page.indexed and other.indexed) and any(
        one is not None and two is not None and radius is not None and (one ^ two).bit_count() <= radius
        for one, two, radius in values
    )


def may_be_similar(page: Entry, other: Entry, common: npt.NDArray[np.uint32], min_jaccard: float) -> bool:
    """What the columns say of one page alone."""
    data = np.frombuffer(other.evidence, np.uint8)
    columns = EvidenceColumns.of(data, np.zeros(1, np.int64), np.array([len(data)]))
    return bool(columns.shingles[0]) and bool(
        len(columns.similar(np.zeros(1, np.int64), Evidence(page.evidence), common, min_jaccard))
    )


@dataclass
class Row:
    """An entry that is in the window or waits behind it, or a page that was not kept."""

    entry: Entry
    announced: Entry
    live: bool = True
    settled: bool = False


def add(window: Window, *entries: Entry) -> None:
    """Keep pages, one batch each."""
    for entry in entries:
        window.announce(PageColumns.of_entries([entry]))
        window.keep(0)
        window.finish()


def bare(entry: Entry) -> Entry:
    """What is left of an entry that is removed before it is settled."""
    return replace(entry, evidence=b"")


def entries_of(unsettled: Unsettled) -> list[Entry]:
    """Unsettled entries as values."""
    rows = zip(unsettled.rows.tolist(), unsettled.packed, unsettled.keys, strict=True)
    return [entry_in(row, packed, keys) for row, packed, keys in rows]


class History(RuleBasedStateMachine):
    """Any history of batches, removals, and entries that are settled and leave."""

    def __init__(self) -> None:
        super().__init__()
        self.window, self.rows, self.ordinal, self.next_row = Window(), list[Row](), 0, 0
        self.left_at = -1

    @rule(
        chosen=st.lists(st.tuples(pages, st.sampled_from("kkns"), st.integers(0, 3)), max_size=40),
        min_jaccard=st.sampled_from(BOUNDS),
        radii=st.sampled_from(RADII),
        mask=st.sampled_from([0xFF, 0xFE]),
        common_sentences=st.integers(0, 2),
    )
    def decide(
        self,
        chosen: list[tuple[Entry, str, int]],
        min_jaccard: float,
        radii: tuple[int | None, int | None],
        mask: int,
        common_sentences: int,
    ) -> None:
        """Decide a batch: some pages are kept, some are not, and now and then one is removed again in the batch."""
        window, ordinals = self.window, self.ordinal + np.cumsum([1 + skipped for *_, skipped in chosen])
        made = [
            replace(page, sequence=5 * ordinal, ordinal=ordinal)
            for (page, *_), ordinal in zip(chosen, ordinals.tolist(), strict=True)
        ]
        columns = PageColumns.of_entries(made)
        window.announce(columns)
        compared = window.compare(columns.marks & np.uint8(mask), min_jaccard, radii)
        assert compared.offsets[-1] == len(compared.places)
        announced = list(self.rows)
        for number, (entry, (page, fate, skipped)) in enumerate(zip(made, chosen, strict=True)):
            self.ordinal = entry.ordinal
            if skipped == 3:
                self._remove_one(number)
            if skipped == 2:
                self._leave(self.ordinal - 20)
            sieved = [row for row in announced if mask & 1 and passes_sieve(page, row.announced)]
            assert compared.passed[number] == len(sieved)
            expected = [
                (row.entry, row in sieved and is_close(page, row.entry, min_jaccard), is_near(page, row.entry, radii))
                for row in self.rows
                if row.live
            ]
            found = slice(compared.offsets[number], compared.offsets[number + 1])
            places = compared.places[found]
            known = [window.at(place) for place in places.tolist()]
            marks = zip(known, compared.by_sieve[found], compared.by_distance[found], strict=True)
            assert np.all(np.diff(places) > 0)
            assert [mark for mark in marks if mark[0] is not None] == [mark for mark in expected if mark[1] or mark[2]]
            common = Evidence(page.evidence).sentence_values[:common_sentences]
            similar = window.similar(places, Evidence(page.evidence), common, min_jaccard).tolist()
            assert [at for place in similar if (at := window.at(place)) is not None] == [
                at for at in known if at is not None and may_be_similar(page, at, common, min_jaccard)
            ]
            row = Row(entry if fate == "k" else bare(entry), entry, live=fate == "k")
            announced.append(row)
            if fate != "n":
                window.keep(number)
                self.rows.append(row)
            if fate == "s":
                window.remove(entry.sequence)
        window.finish()

    @precondition(lambda self: self.rows)
    @rule(number=st.integers(0, 99))
    def remove(self, number: int) -> None:
        """A young entry is removed from the window, one that is settled is forgotten."""
        self._remove_one(number)

    @rule(back=st.integers(-1, 90))
    def settle_and_leave(self, back: int) -> None:
        """What is due gets a row, and leaves later, at once or never."""
        due = [row for row in self.rows if not row.settled and row.entry.ordinal <= self.ordinal - back]
        assert entries_of(self.window.unsettled(self.ordinal - back)) == [row.entry for row in due]
        assert self.window.backlog(self.ordinal - back) == len(due)
        self.window.settle(self.next_row, [b"path"] * len(due))
        for row in due:
            row.entry, row.settled = row.entry.settle(b"path", self.next_row), True
            self.next_row += 1
        self._leave(self.ordinal - back - 3)

    @invariant()
    def young_entries_are_known(self) -> None:
        """All that are live and not settled, by sequence and in order; no others."""
        young = [row.entry for row in self.rows if row.live and not row.settled]
        assert self.window.entries() == young
        assert len(self.window) == len(young)
        assert self.window.earliest() == (young[0] if young else None)
        assert [self.window.get(row.entry.sequence) for row in self.rows] == [
            row.entry if row.live and not row.settled else None for row in self.rows
        ]
        assert self.window.get(5 * self.ordinal + 1) is None

    def _remove_one(self, number: int) -> None:
        live = [row for row in self.rows if row.live]
        if live:
            row = live[number % len(live)]
            row.live = False
            if row.settled:
                self.window.forget(row.entry)
            else:
                row.entry = bare(row.entry)
                self.window.remove(row.entry.sequence)

    def _leave(self, ordinal: int) -> None:
        self.left_at = max(self.left_at, ordinal)
        gone = [row for row in self.rows if row.settled and row.entry.ordinal <= self.left_at]
        self.rows = [row for row in self.rows if row not in gone]
        self.window.leave(ordinal)
        for row in gone:
            self.window.forget(row.entry)  # changes nothing


History.TestCase.settings = settings(max_examples=50, stateful_step_count=25, deadline=None)
TestHistory = History.TestCase


def found_by(window: Window, page: Entry, min_jaccard: float) -> list[int]:
    """The sequences of the live entries that the window finds for a page, which is not kept."""
    columns = PageColumns.of_entries([page])
    window.announce(columns)
    places = window.compare(columns.marks, min_jaccard, (None, None)).places
    found = [entry.sequence for place in places.tolist() if (entry := window.at(place)) is not None]
    window.finish()
    return found


@given(st.permutations(range(12)), st.integers(0, 6), st.lists(st.integers(1, 24), min_size=1))
def test_the_answer_is_that_of_the_pages_that_are_left(order: list[int], number: int, cuts: list[int]) -> None:
    """A window that lost pages finds what one finds that never had them, in whatever batches they came."""
    entries = [Entry(at, None, None, None, 1, evidence=EVIDENCE[at % 8], ordinal=at) for at in range(24)]
    lost, without = Window(), Window()
    for first, end in zip([0, *sorted(set(cuts))], [*sorted(set(cuts)), 24], strict=True):
        lost.announce(PageColumns.of_entries(entries[first:end]))
        for page in range(end - first):
            lost.keep(page)
        lost.finish()
    add(without, *(entry for entry in entries if entry.sequence not in order[:5]))
    for sequence in order[:5]:
        lost.remove(sequence)
    for window in (lost, without):
        window.settle(0, [b""] * len(window.unsettled(7)))
        window.leave(3)
    found = [
        found_by(window, Entry(99, None, None, None, 1, evidence=EVIDENCE[number]), 0.15) for window in (lost, without)
    ]
    assert found[0] == found[1]


def test_a_page_is_found_until_it_leaves() -> None:
    """An empty window finds nothing; so does one whose pages all left, and one with pages without shingles alone."""
    page, window = Entry(9, None, None, None, 1, evidence=EVIDENCE[0]), Window()
    assert found_by(window, page, 0.0) == []
    add(window, Entry(1, None, None, None, 1, ordinal=1, evidence=EVIDENCE[7]))
    assert (len(window), found_by(window, page, 0.0)) == (1, [])
    add(window, Entry(2, None, None, None, 1, ordinal=2, evidence=EVIDENCE[0]))
    assert found_by(window, page, 1.0) == [2]
    window.leave(1)
    window.settle(0, [b""])
    assert found_by(window, page, 1.0) == [2]
    window.leave(2)
    assert found_by(window, page, 1.0) == [2]  # it has no row yet: the tables do not know it
    window.settle(0, [b""] * len(window.unsettled(2)))
    assert (len(window), found_by(window, page, 0.0)) == (0, [])


def test_an_entry_that_was_removed_before_it_is_settled_is_still_due() -> None:
    """The cells get it and lose it later, as they do on every machine; until then its keys are kept, nothing else."""
    window = Window()
    entries = [Entry(at, None, None, None, 1, ordinal=at, keys=b"k", evidence=EVIDENCE[0]) for at in range(3)]
    add(window, *entries)
    removed = bare(entries[1])
    window.remove(1)
    assert entries_of(window.unsettled(1)) == [entries[0], removed]
    assert window.entries() == [entries[0], entries[2]]
    restored = Window()
    restored.announce(PageColumns.of_entries([entries[0], removed, entries[2]]))
    for number in range(3):
        restored.keep(number, live=number != 1)
    restored.finish()
    assert entries_of(restored.unsettled(1)) == [entries[0], removed]
    assert restored.entries() == window.entries()
    assert found_by(restored, Entry(9, None, None, None, 1, evidence=EVIDENCE[0]), 1.0) == [0, 2]


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


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1_000])
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
