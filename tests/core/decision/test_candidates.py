"""Where candidates come from: cells, window, equal texts, block indexes."""

import random
from dataclasses import replace

import pytest

from dedup_service.core.decision.decider import Decider
from dedup_service.core.evidence.keys import LEVELS, PARTS
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import PROFILES, rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import VerdictKind
from tests.core.decision.crowded import Run, page_at, page_of
from tests.made_evidence import evidence_of

KEYS_ALONE = MatchRule(keys=True, verified=PROFILES["broad"].verified)
LAYOUTS = [IndexLayout(slots=slots, window=window) for slots, window in ((1, 1), (2, 1), (2, 3), (8, 4), (64, 2))]


def crowd(number: int, *, body: str = "b", text_hash: int | None = None, title: str = "") -> PreparedPage:
    """A page with the keys that all others of its crowd have; its fingerprint and its sketch are its own."""
    url = f"http://site/{number}"
    keys = b"".join(key.to_bytes(4, "little") for key in range(1, LEVELS + 1)) * PARTS
    text = body if len(body) > 1 else "".join(random.Random(number).choices("abcdefghij", k=30))
    evidence = evidence_of(text, title)
    far = random.Random(number).getrandbits(64)
    page = Page(url=url, canonical_url=url, id=url, title=title)
    reason = "too little text" if Evidence(evidence).letters < 60 else None
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
        evidence = evidence_of(body, "one" if text_hash == 5 else "two")
        copy = replace(made, page=page, text_hash=text_hash, fingerprint=far, evidence=evidence)
        verdict = run.decide([copy])[0].verdict
        assert (verdict.reason == "same text") == expected
        assert (verdict.kind is VerdictKind.DUPLICATE) == expected


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
    sentences = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz" + " " * 6, k=60)) + ". " for _ in range(4_100)]
    template = sentences[:6]

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


def kept(run: Run, pages: list[PreparedPage]) -> list[int]:
    """Keep pages whatever the rule says of them; return their sequences."""
    numbered = [(run.next(page), page) for page in pages]
    run.decider.replay(numbered, [(True, None, None)] * len(pages))
    return [sequence for sequence, _ in numbered]


@pytest.mark.parametrize("window", [2, 90, 4096])
def test_of_many_entries_with_one_text_the_earliest_are_candidates(window: int) -> None:
    """Copies are not kept, so there are more than one only where pages were updated to one text."""
    run = Run(rule_for(), IndexLayout(slots=2, window=window))
    pages = [crowd(number, text_hash=5) for number in range(100)]
    sequences = kept(run, pages)
    named = []
    for refused, copy in enumerate(replace(crowd(200 + number, text_hash=5), keys=b"") for number in range(62, 66)):
        for page in pages[: 62 + refused]:
            no = CorrectionRecord(copy.page.canonical_url, page.page.canonical_url, duplicate=False, reason="seen")
            run.decider.correct(no)
        named.append(run.decide([copy])[0].original)
        if len(named) == 3:
            run.decider.drop(sequences[3])
    assert named == [sequences[62], sequences[63], None, None]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_channel_that_the_rule_does_not_probe_has_no_index(profile: str) -> None:
    """Only `simhash` probes bodies; the other profiles find them by keys and exact texts."""
    run = Run(PROFILES[profile], IndexLayout())
    kept(run, [page_at(1)])
    assert set(run.decider.sizes().channels) == ({"words", "body"} if profile == "simhash" else {"words"})


def near_zero(number: int) -> PreparedPage:
    """A page with the fingerprint `number` in both channels, and no key."""
    return replace(crowd(number), fingerprint=Fingerprint(number, number), reason=None, keys=b"")


def test_an_index_is_built_when_a_rule_first_needs_it() -> None:
    """It has the live entries alone, those of the window and those behind it, and goes with the rule."""
    run = Run(rule_for(), IndexLayout(window=9))
    sequences = kept(run, [near_zero(number) for number in range(50)])
    for sequence in sequences[::2]:
        run.decider.drop(sequence)
    far = replace(near_zero(50), fingerprint=Fingerprint(2**64 - 1, 0))
    assert run.decider.candidates(51, far) == []
    for rule in (PROFILES["simhash"], rule_for("body", k=1), rule_for("body", k=7), rule_for()):
        run.decider.set_rule(rule)
        radius = rule.radius("body")
        near = [] if radius is None else [sequences[at] for at in range(1, 50, 2) if at.bit_count() <= radius]
        assert run.decider.candidates(51, far) == near
        assert set(run.decider.sizes().channels) == {
            name for name in ("words", "body") if rule.radius(name) is not None
        }


def test_memory_of_removed_entries_is_given_back() -> None:
    """A filter whose pages are updated for years without an expiry remembers no entry that it removed."""
    run, sizes = Run(rule_for(), IndexLayout(window=1)), []
    page = PreparedPage(Page(url="http://a/", canonical_url="http://a/", id="http://a/"), Fingerprint(), None)
    (sequence,) = kept(run, [page])
    for _ in range(2):
        for _ in range(3_000):
            before, sequence = sequence, run.next(page)
            run.decider.replay([(sequence, page)], [(True, before, None)])
        sizes.append(sum(run.decider.sizes().memory.values()))
        assert (len(run.decider), len(run.decider.state().removed) <= 2) == (1, True)
    assert sizes[1] <= 1.1 * sizes[0]
