"""Tests for evidence, and for the similarity of two pages by their evidence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.evidence.packed import Evidence, pack_evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.text.normalise import fold, letters

STORY = [
    f"市交通局{month}月{day}日公布，第{number}号线的工程提前{weeks}周完工，沿线{stops}个车站将于下月起陆续开放。"
    for month, day, number, weeks, stops in ((n + 1, 2 * n + 3, n + 2, n + 4, n + 9) for n in range(12))
]


def evidence(text: str, title: str = "", metadata: bytes = b"") -> Evidence:
    """Return the evidence of a page."""
    folded = fold(text)
    return Evidence(pack_evidence(fold(title), folded, letters(folded), metadata))


def test_fifteen_letters_of_an_alphabet_count_as_eight() -> None:
    """A bound on the size means the same for English and Chinese text; `letters` counts every letter."""
    assert (evidence("大" * 160).size, evidence("a" * 300).size, evidence("大桥" * 40 + "a1" * 75).size) == (
        160,
        160,
        160,
    )
    assert (evidence("a" * 300).letters, Similarity(evidence("大" * 200), evidence("a" * 300)).min_letters) == (
        300,
        160,
    )


def test_a_page_that_was_cut_is_contained_whole() -> None:
    """Its shingles, sentences and numbers are all in the longer page; only the Jaccard similarity falls."""
    alike = Similarity(evidence("".join(STORY)), evidence("".join(STORY[:8])))
    assert alike.jaccard == pytest.approx(8 / 12, abs=0.1)
    assert alike.containment > 0.9
    assert (alike.sentences, alike.numbers, alike.missing_numbers, alike.swapped_numbers) == (1.0, 1.0, 0.0, 0.0)
    assert alike.length_ratio == pytest.approx(12 / 8, abs=0.05)


def test_a_series_shares_its_wording_and_not_its_figures() -> None:
    """The next item of a series has other dates and numbers in the same sentences."""
    later = [sentence.replace("月", "月2").replace("周", "9周").replace("个车站", "0个车站") for sentence in STORY]
    alike = Similarity(evidence("".join(STORY)), evidence("".join(later)))
    assert alike.jaccard > 0.25
    assert alike.sentences == 0.0
    assert alike.numbers < 0.7
    assert alike.missing_numbers > 10
    assert alike.swapped_numbers > 0.4
    assert alike.figures == 0.0


def test_titles_are_compared_by_their_terms() -> None:
    """Terms are words, or pairs of characters in unspaced scripts; a page without a title shares none."""
    assert Similarity(evidence("x", "Bridge opens in May"), evidence("x", "Bridge opens in June")).title == 0.6
    assert Similarity(evidence("x", "跨江大桥通车"), evidence("x", "跨江大桥通车了")).title == pytest.approx(5 / 6)
    assert Similarity(evidence("x", "跨江大桥通车"), evidence("x")).title == 0.0


TEXTS = st.lists(st.sampled_from([*STORY, "short. ", "12 ", "3.5 "]), max_size=60).map("".join)


@given(TEXTS, TEXTS, st.sampled_from(["", "a b", "b c"]))
def test_both_orders_give_the_same(one: str, other: str, title: str) -> None:
    """Every quantity is symmetric, so it does not matter which page came first."""
    a, b = evidence(one, title), evidence(other, "a b")
    names = ("jaccard", "containment", "title", "sentences", "numbers", "missing_numbers", "length_ratio")
    names += ("swapped_numbers", "figures", "min_letters")
    assert [getattr(Similarity(a, b), name) for name in names] == [getattr(Similarity(b, a), name) for name in names]


def test_an_empty_page_is_similar_to_no_other() -> None:
    """Empty evidence reads as that of a page without text."""
    nothing = Evidence(b"")
    assert (nothing.letters, nothing.metadata, nothing.numbers, len(nothing.sentence_values)) == (0, b"", (), 0)
    alike = Similarity(nothing, evidence("".join(STORY), "a title"))
    assert (alike.jaccard, alike.containment, alike.sentences, alike.title) == (0.0, 0.0, 0.0, 0.0)
    assert alike.length_ratio == float("inf")


@pytest.mark.parametrize("packed", [b"S12345678", b"x" * 400, b"\xff" * 309])
def test_invalid_bytes_read_as_empty_evidence(packed: bytes) -> None:
    """A log may contain what another program wrote: such a page is kept, and nothing fails."""
    assert (Evidence(packed).metadata, Evidence(packed).shingles, Evidence(packed).terms) == (b"", 0, ())
    assert Similarity(Evidence(packed), evidence("".join(STORY))).jaccard == 0.0


def test_metadata_can_be_read_back() -> None:
    """Metadata is the last part of evidence, or the only one."""
    assert evidence("".join(STORY), "title", b"S12345678").metadata == b"S12345678"
    assert evidence("", "", b"S1").metadata == b"S1"
    assert evidence("").packed == b""


def test_the_evidence_of_a_long_text_is_bounded() -> None:
    """Numbers and sentences are sampled, so the evidence of any page fits in 800 bytes."""
    long = "".join(f"{number} 号车站于第 {number * 7} 天开放。" for number in range(2000))
    assert len(evidence(long, "标题" * 40).packed) < 800
    assert Similarity(evidence(long), evidence(long + STORY[0])).missing_numbers == pytest.approx(0.0, abs=0.1)
