"""Where candidates come from: cells, window, equal texts, block indexes."""

import random
from dataclasses import replace

import numpy as np
import pytest

from dedup_service.core.decision.candidates import LocalCandidates
from dedup_service.core.decision.decider import Decider
from dedup_service.core.decision.entries import Entry
from dedup_service.core.evidence.keys import LEVELS, PARTS
from dedup_service.core.evidence.packed import Evidence, pack_evidence
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import PROFILES, rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.text.normalise import letters
from dedup_service.core.verdict import VerdictKind
from tests.core.decision.announced import announced
from tests.core.decision.crowded import Run, page_at, page_of

KEYS_ALONE = MatchRule(keys=True, verified=PROFILES["broad"].verified)
LAYOUTS = [IndexLayout(slots=slots, window=window) for slots, window in ((1, 1), (2, 1), (2, 3), (8, 4), (64, 2))]


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
    """Five thousand pages whose keys are all the same: a copy of any of them is a duplicate of it.

    Before and after the original has left the window, and also if it is too short to be judged.
    """
    run = Run(rule_for(), IndexLayout())
    pages = [crowd(number) for number in range(5_000)]
    kinds = {decision.verdict.kind for decision in run.decide(pages)}
    assert kinds == {VerdictKind.UNDECIDED}  # too short, and kept
    for number in (0, 1, 17, 900, 4_500, 4_998, 4_999):
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


def test_pages_that_were_not_announced_are_refused() -> None:
    """A page is decided inside of a batch that has it."""
    candidates, page = LocalCandidates(rule_for()), page_at(3)
    with pytest.raises(RuntimeError, match="no page is judged"):
        candidates.find(Evidence(page.evidence))
    with announced(candidates, [(1, page)], 0):
        candidates.begin(0)
        with pytest.raises(RuntimeError, match="more pages are decided than were announced"):
            candidates.begin(1)


def test_memory_of_removed_entries_is_given_back() -> None:
    """A filter whose pages are updated for years without an expiry remembers no row that it removed."""
    candidates = LocalCandidates(rule_for(), layout=IndexLayout(window=1))
    page = PreparedPage(Page(url="http://a/", canonical_url="http://a/", id="http://a/"), Fingerprint(), None)
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
