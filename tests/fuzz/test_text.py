"""Texts: folding, segmentation and evidence of any string."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import PageText, cut_at_boundaries, exact_form, fold
from dedup_service.core.evidence.keys import LEVELS, MAX_LEVELS, PARTS, unpacked_keys
from dedup_service.core.evidence.packed import MAX_NUMBERS, MAX_SENTENCES, MAX_TERMS, Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.page import Page
from dedup_service.runtime.resources import build_fingerprinter
from tests.fuzz.budget import within
from tests.fuzz.examples import fuzzed
from tests.fuzz.mutation import hostile, mutated
from tests.fuzz.quantities import QUANTITIES

ADDRESS = "http://a.test/1"
CHARACTERS = st.sampled_from(
    [
        *"图书馆万亿0123456789.,:-−²³½%$'\"·…ａＡßŒｶﾞกำ가ᄀ\n\t ",
        *"\u0301\u0315\u200d\ufe0f\u3099\u3000\0\u2028\ud800\U0001f600",
    ]
)
OF_ANY_BLOCK = st.builds(lambda block, place: chr(block << 7 | place), st.integers(0, 0x21FF), st.integers(0, 0x7F))
STRINGS = st.lists(CHARACTERS | OF_ANY_BLOCK | st.characters(), max_size=60).map("".join)
TEXTS = STRINGS | hostile("text", 2_000).map(str)
PACKED = st.builds(
    lambda title, text: build_fingerprinter().prepare(page(text, title)).evidence, STRINGS, STRINGS
)  # fmt: skip


def page(text: str, title: str = "") -> Page:
    return Page(url=ADDRESS, canonical_url=ADDRESS, id="a", title=title, text=text, keywords=(title,))


def check(text: str, title: str = "") -> None:
    """What must hold for any text and title."""
    with within(text, title):
        folded, texts = fold(text), PageText(title, text)
        prepared = build_fingerprinter().prepare(page(text, title))
        words = build_fingerprinter().words(page(text, title))
    assert fold(folded) == folded
    assert len(folded) <= 20 * len(text), "U+FDFA is 18 characters"
    assert texts.title == fold(title)
    assert texts.body in folded
    assert len(texts.letters) <= len(texts.body)
    assert all(len(exact_form(exact)) <= len(exact) for exact in texts.exact)
    assert all(words)
    assert all(piece in folded for piece in cut_at_boundaries(folded))
    other = page(title, text)
    assert build_fingerprinter().prepare_all([other, page(text, title), other], threads=2)[1] == prepared
    check_evidence(prepared.evidence)
    assert all(list(part) == sorted(part) for part in unpacked_keys(prepared.keys, LEVELS))


def check_evidence(packed: bytes) -> None:
    """What must hold for the evidence in any bytes."""
    with within(packed):
        evidence = Evidence(packed)
        assert len(evidence.numbers) <= max(MAX_NUMBERS, len(packed))
        values = evidence.sentence_values
        assert len(values) <= max(MAX_SENTENCES, len(packed))
        assert len(evidence.terms) <= max(MAX_TERMS, len(packed))
        assert len(evidence.metadata) <= len(packed)
        assert evidence.letters >= 0
        assert 0 <= evidence.figures < 1 << 64
    assert all(0 <= value < 1 << 32 for value in values)


@fuzzed(50)
@given(text=TEXTS, title=STRINGS)
def test_any_text_is_folded_cut_and_packed(text: str, title: str) -> None:
    """Folding is idempotent; whatever follows is bounded, and the same again beside other pages in threads."""
    check(text, title)


@fuzzed(40)
@given(packed=st.binary(max_size=600) | mutated(PACKED))
def test_any_bytes_are_evidence(packed: bytes) -> None:
    """Bytes that nobody packed are the evidence of an empty page, or of one that they describe."""
    check_evidence(packed)


@fuzzed(40)
@given(one=st.binary(max_size=600) | mutated(PACKED), other=PACKED)
def test_any_evidence_is_compared(one: bytes, other: bytes) -> None:
    """Every quantity of two pages is a number, whatever was packed."""
    with within(one, other):
        for pair in (Similarity(Evidence(one), Evidence(other)), Similarity(Evidence(other), Evidence(one))):
            for name in QUANTITIES:
                assert getattr(pair, name) >= 0, name  # false for NaN


@fuzzed(10)
@given(packed=st.binary(max_size=1200), levels=st.integers(1, MAX_LEVELS))
def test_any_bytes_are_keys(packed: bytes, levels: int) -> None:
    """Keys of another size than the index has are none."""
    with within(packed):
        keys = unpacked_keys(packed, levels)
        assert [len(part) for part in keys] == [levels] * PARTS
