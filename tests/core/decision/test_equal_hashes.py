"""Entries by the hash of a URL, a text or a body, against a list of entries: crowds, and hashes that look alike.

Tables know 35 bits of a hash (`core.index.hash_rows`). Most hashes here share these bits with others.
"""

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dedup_service.core.decision import candidates as candidates_module
from dedup_service.core.decision import oldest_entries
from dedup_service.core.decision.candidates import LocalCandidates
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.matching import body_decides
from dedup_service.core.evidence.packed import pack_evidence
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.text.normalise import letters
from dedup_service.core.url import url_hash
from tests.core.decision.announced import announced
from tests.core.index.twins import twin

URLS = ["http://a/", "http://b/", "http://c/"]
URL_HASHES = [hashed for url in URLS for hashed in (url_hash(url), twin(url_hash(url), 1), twin(url_hash(url), 77))]
HASHES = [5, twin(5, 1), twin(5, 2), 6, 1 << 63]
LONG = pack_evidence("", "long " * 90, letters("long " * 90), b"")
SHORT = pack_evidence("", "short " * 5, letters("short " * 5), b"")
EARLIEST = 64


@dataclass(frozen=True)
class Step:
    """A page of a batch. url_hash: of its entry, if it is kept. removed: says which entry it removes, if one."""

    url: str
    claimed: str | None
    url_hash: int
    text_hash: int | None
    body_hash: int | None
    evidence: bytes
    removed: int | None

    def page(self) -> PreparedPage:
        """The page."""
        page = Page(url=self.url, canonical_url=self.url, id=self.url, claimed_url=self.claimed)
        return PreparedPage(page, Fingerprint(), self.body_hash, self.evidence, text_hash=self.text_hash)

    def entry(self, sequence: int, ordinal: int) -> Entry:
        """The entry of the page."""
        return Entry(
            sequence,
            None,
            None,
            self.body_hash,
            self.url_hash,
            evidence=self.evidence,
            text_hash=self.text_hash,
            ordinal=ordinal,
        )


steps = st.builds(
    Step,
    st.sampled_from(URLS),
    st.sampled_from([None, *URLS]),
    st.sampled_from(URL_HASHES),
    st.sampled_from([None, *HASHES]),
    st.sampled_from([None, *HASHES]),
    st.sampled_from([LONG, SHORT]),
    st.sampled_from([None, None, None, *range(0, 60, 7)]),
)
batches = st.lists(st.tuples(steps, st.booleans()), min_size=1, max_size=15)


class History(RuleBasedStateMachine):
    """Any history of batches and removals; batches are cut and memory is tidied up after a few pages."""

    @initialize(window=st.sampled_from([1, 2, 7, 40]))
    def begin(self, window: int) -> None:
        self.patch = pytest.MonkeyPatch()
        for module, name, value in ((candidates_module, "_MAX_UNSETTLED", 3), (oldest_entries, "_AHEAD", 4)):
            self.patch.setattr(module, name, value)
        self.layout = IndexLayout(slots=2, window=window)
        self.candidates = LocalCandidates(rule_for(), layout=self.layout)
        self.entries, self.ordinal = dict[int, Entry](), -1

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()

    @rule(batch=batches, copies=st.sampled_from([1, 1, 5]))
    def decide(self, batch: list[tuple[Step, bool]], copies: int) -> None:
        batch = batch * copies
        first = self.ordinal + 1
        pages = [(3 * ordinal, step.page()) for ordinal, (step, _) in enumerate(batch, first)]
        urls = [step.url_hash for step, _ in batch]
        with announced(self.candidates, pages, first, urls=urls):
            for (sequence, _), (step, kept) in zip(pages, batch, strict=True):
                self._begin()
                self._check(step)
                if step.removed is not None:
                    self.remove(step.removed)
                    self._check(step)
                if kept:
                    self.entries[sequence] = step.entry(sequence, self.ordinal)
                    self.candidates.add()

    @rule(step=steps, count=st.integers(1, 70))
    def replay(self, step: Step, count: int) -> None:
        """Entries are added of which it was decided before: nothing is found for them, and a crowd grows."""
        first = self.ordinal + 1
        pages = [(3 * ordinal, step.page()) for ordinal in range(first, first + count)]
        with announced(self.candidates, pages, first, urls=[step.url_hash] * count, judged=False):
            for sequence, _ in pages:
                self._begin()
                self.entries[sequence] = step.entry(sequence, self.ordinal)
                self.candidates.add()

    @precondition(lambda self: self.entries)
    @rule(number=st.integers(0, 1000), count=st.sampled_from([1, 1, 20]))
    def remove(self, number: int, count: int = 1) -> None:
        for place in range(number, number + count):
            if self.entries:
                sequence = sorted(self.entries)[place % len(self.entries)]
                del self.entries[sequence]
                entry = self.candidates.get(sequence)
                assert entry is not None
                self.candidates.remove(entry, self.ordinal)
                assert self.candidates.get(sequence) is None

    @precondition(lambda self: self.entries)
    @rule(share=st.floats(0, 1))
    def expire(self, share: float) -> None:
        """The earliest entries are removed."""
        for sequence in sorted(self.entries)[: int(share * len(self.entries))]:
            first = self.candidates.first()
            assert first is not None
            assert first.sequence == sequence
            del self.entries[sequence]
            self.candidates.remove(first, self.ordinal)

    @rule()
    def go_on_elsewhere(self) -> None:
        """Other candidates take over, with the entries and what the cells still need."""
        removed, held = self.candidates.removed(), self.candidates.held()
        self.candidates = LocalCandidates(rule_for(), held, layout=self.layout, removed=removed)

    @invariant()
    def everything_is_known(self) -> None:
        if hasattr(self, "entries"):
            assert len(self.candidates) == len(self.entries)
            first = self.candidates.first()
            assert (None if first is None else first.sequence) == min(self.entries, default=None)
            self._check_visits()
            for sequence in (*range(-1, 12), *range(3 * self.ordinal - 30, 3 * self.ordinal + 4)):
                self._is(self.candidates.get(sequence), self.entries.get(sequence))

    def _begin(self) -> None:
        self.ordinal += 1
        self.candidates.begin(self.ordinal)

    def _check(self, step: Step) -> None:
        equal = {
            *self._sequences("text_hash", step.text_hash)[:EARLIEST],
            *self._sequences("body_hash", step.body_hash if step.evidence == LONG else None)[:EARLIEST],
        }
        assert [entry.sequence for entry in self.candidates.equal_texts()] == sorted(equal)
        self._check_visits()

    def _check_visits(self) -> None:
        for hashed in URL_HASHES:
            sequence = next(iter(self._sequences("url_hash", hashed)), None)
            self._is(self.candidates.visit(hashed), None if sequence is None else self.entries[sequence])

    def _sequences(self, name: str, value: int | None) -> list[int]:
        """Entries that the table of a hash has, the earliest first."""
        return [
            sequence
            for sequence, entry in sorted(self.entries.items())
            if value is not None and getattr(entry, name) == value and (name != "body_hash" or entry.evidence == LONG)
        ]

    def _is(self, found: Entry | None, expected: Entry | None) -> None:
        """Whether two are the same entry; one of them may have left the window."""
        assert (found is None) == (expected is None)
        if found is not None and expected is not None:
            assert (found.sequence, found.url_hash, found.text_hash, found.body_hash, found.evidence) == (
                expected.sequence,
                expected.url_hash,
                expected.text_hash,
                expected.body_hash,
                expected.evidence,
            )


History.TestCase.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
TestHistory = History.TestCase


def test_one_body_is_long_enough_and_the_other_is_not() -> None:
    """The history above means what it says."""
    assert (body_decides(LONG), body_decides(SHORT)) == (True, False)


def test_memory_of_removed_entries_is_given_back() -> None:
    """A filter whose pages are updated for years without an expiry remembers no row that it removed."""
    candidates = LocalCandidates(rule_for(), layout=IndexLayout(window=1))
    page = Step(URLS[0], None, 0, None, None, b"", None).page()
    for ordinal in range(5_000):
        with announced(candidates, [(ordinal, page)], ordinal, urls=[ordinal], judged=False):
            candidates.begin(ordinal)
            candidates.add()
        if ordinal >= 3_000:
            entry = candidates.get(ordinal - 2_900)  # settled long ago
            assert entry is not None
            candidates.remove(entry, ordinal)
    assert len(candidates) == 3_000
    assert len(candidates._oldest._removed) <= 512
    for sequence in range(100):
        first = candidates.first()
        assert first is not None
        assert first.sequence == sequence
        candidates.remove(first, 5_000)
    first = candidates.first()
    assert first is not None
    assert first.sequence == 2_100
