"""Where candidates come from: cells, window, equal texts, block indexes."""

import random
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.decision.candidates import LocalCandidates
from dedup_service.core.decision.decider import Decider
from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.decision.entry_store import MemoryStore
from dedup_service.core.evidence.keys import LEVELS, PARTS
from dedup_service.core.evidence.packed import Evidence, pack_evidence
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import PROFILES, rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.text.normalise import letters
from dedup_service.core.url import url_hash
from dedup_service.core.verdict import VerdictKind
from tests.core.decision.announced import announced
from tests.core.decision.crowded import Run, page_at, page_of

KEYS_ALONE = MatchRule(keys=True, verified=PROFILES["broad"].verified)
LAYOUTS = [IndexLayout(slots=slots, window=window) for slots, window in ((1, 1), (2, 1), (2, 3), (8, 4), (64, 2))]


@dataclass
class Shard:
    """Candidates beside the entries that were added to them and not removed."""

    candidates: LocalCandidates
    entries: dict[int, Entry] = field(default_factory=dict)

    def find(self, sequence: int, page: PreparedPage, ordinal: int, entry: Entry | None = None) -> set[int]:
        """The candidates for a page, of which an entry may be added."""
        with announced(self.candidates, [(sequence, page)], ordinal):
            self.candidates.begin(ordinal)
            found = {candidate.sequence for candidate in self.candidates.find(Evidence(page.evidence))}
            if entry is not None:
                self.candidates.add()
                self.entries[sequence] = entry
        assert found <= set(self.entries)
        return found

    def remove(self, sequence: int, ordinal: int) -> None:
        """Remove an entry."""
        del self.entries[sequence]
        entry = self.candidates.get(sequence)
        assert entry is not None
        self.candidates.remove(entry, ordinal)


@given(st.sampled_from(LAYOUTS), st.sampled_from([1, 2, 8]), st.lists(st.integers(0, 1 << 32), max_size=50))
def test_slots_find_together_what_one_index_finds(layout: IndexLayout, count: int, seeds: list[int]) -> None:
    """Each shard has the entries of some slots alone, under their ordinals, through additions and removals."""
    rule = rule_for()
    whole = Shard(LocalCandidates(rule, layout=layout))
    shards = [Shard(LocalCandidates(rule, layout=layout)) for _ in range(count)]
    for ordinal, seed in enumerate(seeds):
        page, sequence = page_at(seed), 2 * ordinal + 1
        entry = Entry.from_page(sequence, page, seed, ordinal) if seed % 4 else None
        owner = shards[ordinal % layout.slots % count]
        found = [shard.find(sequence, page, ordinal, entry if shard is owner else None) for shard in shards]
        expected = whole.find(sequence, page, ordinal, entry)
        assert set().union(*found) == expected
        assert sum(map(len, found)) == len(expected)
        if whole.entries and seed % 5 == 0:
            gone = sorted(whole.entries)[seed % len(whole.entries)]
            whole.remove(gone, ordinal)
            shards[gone // 2 % layout.slots % count].remove(gone, ordinal)


def crowd(number: int, *, body: str = "b", text_hash: int | None = None, title: str = "") -> PreparedPage:
    """A page with the keys that all others of its crowd have; its fingerprint and its sketch are its own."""
    url = f"http://site/{number}"
    keys = np.tile(np.arange(1, LEVELS + 1, dtype="<u4"), (PARTS, 1)).tobytes()
    text = body if len(body) > 1 else "".join(random.Random(number).choices("abcdefghij", k=30))
    folded = letters(text)
    evidence = pack_evidence(title, text, folded, b"")
    far = random.Random(number).getrandbits(64)
    page = Page(url=url, canonical_url=url, id=url, title=title)
    reason = "too little text" if len(folded) < 60 else None
    return PreparedPage(
        page, Fingerprint(far, far), far, evidence, reason, far if text_hash is None else text_hash, keys
    )


def test_an_exact_copy_is_found_in_any_crowd() -> None:
    """Ten thousand pages whose keys are all the same: a copy of any of them is a duplicate of it.

    Before and after the original has left the window, and also if it is too short to be judged.
    """
    run = Run(rule_for(), IndexLayout())
    pages = [crowd(number) for number in range(10_000)]
    kinds = {decision.verdict.kind for decision in run.decide(pages)}
    assert kinds == {VerdictKind.UNDECIDED}  # too short, and kept
    for number in (0, 1, 17, 5_000, 9_500, 9_998, 9_999):
        copy = replace(pages[number], page=replace(pages[number].page, canonical_url=f"http://other/{number}"))
        verdict = run.decide([copy])[0].verdict
        assert (verdict.kind, verdict.duplicate_of, verdict.reason) == (
            VerdictKind.DUPLICATE,
            f"http://site/{number}",
            "same text",
        )


@pytest.mark.parametrize("size", [20, 159, 160, 2_000])
@pytest.mark.parametrize("rule", [rule_for(), rule_for("words"), KEYS_ALONE], ids=["balanced", "words", "keys"])
def test_an_equal_body_decides_from_160_letters(size: int, rule: MatchRule) -> None:
    """Under another title a shorter one is another page; with its title it is a copy, whatever the rule compares."""
    body = "".join(chr(0x4E00 + letter) for letter in random.Random(size).choices(range(900), k=size))
    made = crowd(1, body=body, title="one", text_hash=5)
    run = Run(rule, IndexLayout(slots=2, window=1))
    run.decide([made, *(crowd(number) for number in range(2, 6))])
    far = Fingerprint(1, 1)
    for number, (text_hash, expected) in enumerate([(5, True), (6, size >= 160)]):
        page = replace(made.page, canonical_url=f"http://other/{number}")
        evidence = pack_evidence("one" if text_hash == 5 else "two", body, letters(body), b"")
        copy = replace(made, page=page, text_hash=text_hash, fingerprint=far, evidence=evidence)
        verdict = run.decide([copy])[0].verdict
        assert (verdict.reason == "same text") == expected
        assert (verdict.kind is VerdictKind.DUPLICATE) == expected


@pytest.mark.parametrize("profile", PROFILES)
def test_a_channel_that_the_rule_does_not_probe_has_no_index(profile: str) -> None:
    """Only `simhash` probes bodies; the other profiles find them by keys and exact texts."""
    candidates = LocalCandidates(PROFILES[profile])
    with announced(candidates, [(1, crowd(1, text_hash=5))], 1):
        candidates.begin(1)
        candidates.add()
    expected = {"words", "body"} if profile == "simhash" else {"words"}
    assert set(candidates.sizes().channels) == expected


@pytest.mark.parametrize("window", [2, 90, 4096])
def test_of_many_entries_with_one_text_the_earliest_are_candidates(window: int) -> None:
    """Copies are not kept, so there are more than one only where pages were updated to one text."""
    candidates = LocalCandidates(rule_for(), layout=IndexLayout(slots=2, window=window))
    copy = replace(crowd(200, text_hash=5), keys=b"")
    with announced(candidates, [(number, crowd(number, text_hash=5)) for number in range(100)], 0, judged=False):
        for number in range(100):
            candidates.begin(number)
            candidates.add()
    with announced(candidates, [(100, copy), (101, copy)], 100):
        candidates.begin(100)
        assert [entry.sequence for entry in candidates.equal_texts()] == list(range(64))
        removed = candidates.get(3)
        assert removed is not None
        candidates.remove(removed, 100)
        candidates.begin(101)
        assert [entry.sequence for entry in candidates.equal_texts()] == [at for at in range(65) if at != 3]


@pytest.mark.parametrize("evidence", [b"", b"x" * 10, b"\1" * 40, b"\1" * 291, b"\1" * 300, bytes(400)])
@pytest.mark.parametrize("keys", [b"", b"1234", bytes(256), b"\1" * 256])
def test_evidence_and_keys_that_are_none_stop_nobody(evidence: bytes, keys: bytes) -> None:
    """A record that something else wrote reads as a page without shingles: kept, removed, and settled like others."""
    run = Run(rule_for(), IndexLayout(slots=2, window=2))
    pages = []
    for number in range(12):
        page = crowd(number)
        pages.append(replace(page, evidence=evidence, keys=keys) if number % 2 else page)
    run.decide(pages)
    again = Run(rule_for(), IndexLayout(slots=2, window=2), run)
    for number in range(12):
        run.retract(0)
        again.retract(0)
        later = [page_at(number)]
        assert run.decide(later) == again.decide(later)
        assert run.snapshot() == again.snapshot()


def test_a_candidate_in_the_cells_is_found_however_far_back() -> None:
    """Edited copies of the first, a middle and the latest page of a site with a template, behind the window."""
    rng = random.Random(9)
    sentences = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=60)) + ". " for _ in range(4_100)]
    template = sentences[:12]

    run = Run(rule_for(), IndexLayout(slots=8, window=16))
    own = [sentences[12 + 8 * number : 20 + 8 * number] for number in range(500)]
    pages = [page_of(f"http://site{number}/", [*template, *own[number]]) for number in range(500)]
    assert {made.verdict.kind for made in run.decide(pages)} == {VerdictKind.UNIQUE}
    for number in (0, 250, 470, 499):
        copy = page_of(f"http://copy{number}/", [*template, *own[number][:7]])
        verdict = run.decide([copy])[0].verdict
        assert (verdict.kind, verdict.duplicate_of) == (VerdictKind.DUPLICATE, f"http://site{number}/")


def test_the_state_of_a_decider_says_how_many_pages_it_decided() -> None:
    """Every page counts, of which no entry remains, too."""
    run = Run(rule_for(), IndexLayout(slots=2, window=3))
    run.decide([page_at(number) for number in range(20)])
    assert run.decider.state().ordinal == 20
    assert Decider(rule_for(), "space", run).state().ordinal == 0


def sequences(found: list[Entry] | list[Entry | None]) -> list[int | None]:
    """Which entries these are. In a batch, some are settled earlier."""
    return [None if entry is None else entry.sequence for entry in found]


@given(
    st.sampled_from([1, 2, 3, 7, 40]),
    st.sampled_from([rule_for(), KEYS_ALONE, PROFILES["simhash"]]),
    st.lists(st.integers(0, 1 << 32), min_size=1, max_size=60),
    st.lists(st.integers(1, 25), min_size=1),
)
@settings(max_examples=60)
def test_a_batch_is_cut_where_it_is_longer_than_the_window(
    window: int, rule: MatchRule, seeds: list[int], sizes: list[int]
) -> None:
    """Every answer is that of pages that come one by one, whatever the batches are and wherever entries are removed."""
    layout = IndexLayout(slots=2, window=window)
    batched, single = (LocalCandidates(rule, layout=layout) for _ in range(2))
    pages = [(3 * ordinal, page_at(seed)) for ordinal, seed in enumerate(seeds)]
    first = 0
    for size in sizes * len(pages):
        batch = pages[first : first + size]
        with announced(batched, batch, first):
            for ordinal, (sequence, page) in enumerate(batch, first):
                batched.begin(ordinal)
                with announced(single, [(sequence, page)], ordinal):
                    single.begin(ordinal)
                    evidence, url = Evidence(page.evidence), url_hash(page.page.canonical_url)
                    assert sequences(batched.find(evidence)) == sequences(single.find(evidence))
                    assert sequences(batched.equal_texts()) == sequences(single.equal_texts())
                    assert sequences([batched.visit(url)]) == sequences([single.visit(url)])
                    for candidates in (batched, single):
                        gone = candidates.visit(url) if seeds[ordinal] % 3 == 0 else candidates.first()
                        if gone is not None and seeds[ordinal] % 5 < 2:
                            candidates.remove(gone, ordinal)
                        if seeds[ordinal] % 7:
                            candidates.add()
        assert batched.removed() == single.removed()
        assert list(batched.held().rows().entries()) == list(single.held().rows().entries())
        assert batched.young() == single.young()
        first += size
        if first >= len(pages):
            break


def test_pages_that_were_not_announced_are_refused() -> None:
    """A page is decided inside of a batch that has it."""
    candidates, page = LocalCandidates(rule_for()), page_at(3)
    with pytest.raises(RuntimeError, match="no page is judged"):
        candidates.find(Evidence(page.evidence))
    with announced(candidates, [(1, page)], 0):
        candidates.begin(0)
        with pytest.raises(RuntimeError, match="more pages are decided than were announced"):
            candidates.begin(1)


@pytest.mark.parametrize("window", [1, 20, 4096])
def test_another_rule_finds_what_it_would_have_found_from_the_start(window: int) -> None:
    """An index that a rule asks for is built from the entries that are there, and dropped when no rule asks for it."""
    layout, rules = IndexLayout(slots=2, window=window), [rule_for(), PROFILES["simhash"], KEYS_ALONE, rule_for(k=5)]
    changed = Shard(LocalCandidates(rules[0], layout=layout))
    steady = [Shard(LocalCandidates(rule, layout=layout)) for rule in rules]
    seen = set()
    for ordinal in range(160):
        page, chosen = page_at(ordinal), ordinal // 16 % len(rules)
        changed.candidates.use(rules[chosen])
        radii = {"words": rules[chosen].radius("words"), "body": rules[chosen].radius("body")}
        indexes = changed.candidates.tables.indexes
        assert {name: index.radius for name, index in indexes.items()} == {
            name: radius for name, radius in radii.items() if radius is not None
        }
        entry = Entry.from_page(ordinal, page, ordinal, ordinal)
        found = changed.find(ordinal, page, ordinal, entry)
        assert found == [shard.find(ordinal, page, ordinal, entry) for shard in steady][chosen]
        of_steady = steady[chosen].candidates.tables.indexes
        assert {name: len(index) for name, index in indexes.items()} == {
            name: len(index) for name, index in of_steady.items()
        }
        seen.add((chosen, bool(found)))
        if ordinal % 4 == 3:
            for shard in (changed, *steady):
                shard.remove(min(shard.entries) if ordinal % 8 == 3 else max(shard.entries), ordinal)
    assert {chosen for chosen, found in seen if found} == set(range(len(rules)))


@pytest.mark.parametrize("window", [1, 5, 60])
@pytest.mark.parametrize("rule", [rule_for(), PROFILES["simhash"]], ids=["balanced", "simhash"])
def test_candidates_go_on_with_a_store_that_has_their_entries(window: int, rule: MatchRule) -> None:
    """Tables are built from its rows; entries of the window, and those that the cells still need, are told."""
    layout, store = IndexLayout(slots=2, window=window), MemoryStore()
    steady = Shard(LocalCandidates(rule, layout=layout))
    other = Shard(LocalCandidates(rule, layout=layout, store=store))
    for ordinal in range(150):
        page = page_at(ordinal)
        entry = Entry.from_page(ordinal, page, ordinal, ordinal) if ordinal % 4 else None
        found = other.find(ordinal, page, ordinal, entry)
        assert found == steady.find(ordinal, page, ordinal, entry)
        if ordinal % 3 == 2:
            for shard in (steady, other):
                shard.remove(min(shard.entries) if ordinal % 2 else max(shard.entries), ordinal)
        if ordinal % 10 == 9:
            removed = other.candidates.removed()
            young = [EntryRows.from_entries(other.candidates.young())]
            again = LocalCandidates(rule, young, layout=layout, store=store, removed=removed)
            assert len(again) == len(other.candidates)
            other = Shard(again, other.entries)
        assert list(other.candidates.held().rows().entries()) == list(steady.candidates.held().rows().entries())
    sizes, expected = other.candidates.sizes().cells, steady.candidates.sizes().cells
    assert (sizes.entries, sizes.cells, sizes.overflowed) == (expected.entries, expected.cells, expected.overflowed)
