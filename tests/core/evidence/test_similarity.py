"""Tests for evidence, and for the similarity of two pages by their evidence."""

import random
from array import array
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import distinct_ngrams
from dedup_service.core.evidence.packed import MAX_NUMBERS, Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.verdict import Distance
from tests.core.evidence.any_evidence import COMMON, DISTANCES, evidence_pairs, is_of_a_page
from tests.made_evidence import evidence_of
from tests.oracle.similarity import PlainSimilarity

STORY = [
    f"市交通局{month}月{day}日公布，第{number}号线的工程提前{weeks}周完工，沿线{stops}个车站将于下月起陆续开放。"
    for month, day, number, weeks, stops in ((n + 1, 2 * n + 3, n + 2, n + 4, n + 9) for n in range(12))
]


def evidence(text: str, title: str = "", metadata: tuple[str, ...] = ()) -> Evidence:
    """Return the evidence of a page."""
    return Evidence(evidence_of(text, title, metadata))


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
    """Its shingles and figures are all in the longer page; only the Jaccard similarity falls."""
    alike = Similarity(evidence("".join(STORY)), evidence("".join(STORY[:8])))
    assert alike.jaccard == pytest.approx(8 / 12, abs=0.1)
    assert alike.containment > 0.9
    assert alike.figures == 0.5
    assert alike.length_ratio == pytest.approx(12 / 8, abs=0.05)


def test_a_series_shares_its_wording_and_not_its_figures() -> None:
    """The next item of a series has other dates and numbers in the same sentences."""
    later = [sentence.replace("月", "月2").replace("周", "9周").replace("个车站", "0个车站") for sentence in STORY]
    alike = Similarity(evidence("".join(STORY)), evidence("".join(later)))
    assert alike.jaccard > 0.25
    assert alike.figures == 0.0


NUMBERS = st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["kg", "km", "%", "€"])), max_size=25)


def written(numbers: list[tuple[int, str]]) -> str:
    """A text of numbers with units."""
    return "; ".join(f"{value} {unit}" for value, unit in numbers)


@given(NUMBERS, NUMBERS)
def test_figures_are_those_of_multisets(one: list[tuple[int, str]], other: list[tuple[int, str]]) -> None:
    """Compared with counts of the numbers themselves: whether figures changed, or were added."""
    ours, theirs = Counter(one), Counter(other)
    alike = Similarity(evidence(written(one)), evidence(written(other)))
    assert alike.figures == (1.0 if ours == theirs else 0.5 if ours <= theirs or theirs <= ours else 0.0)


def test_any_difference_is_a_change_where_figures_are_too_many() -> None:
    """Of more numbers than evidence keeps, it does not say which were added; equal figures are still equal."""
    many = [(value, "kg") for value in range(MAX_NUMBERS + 1)]
    more = [*many, (99, "km")]
    assert Similarity(evidence(written(many)), evidence(written(more))).figures == 0.0
    assert Similarity(evidence(written(many)), evidence(written(many[::-1]))).figures == 1.0


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
    names = ("jaccard", "containment", "title", "length_ratio", "figures", "min_letters", "score")
    assert [getattr(Similarity(a, b), name) for name in names] == [getattr(Similarity(b, a), name) for name in names]


def test_an_empty_page_is_similar_to_no_other() -> None:
    """Empty evidence reads as that of a page without text."""
    nothing = Evidence(b"")
    assert (nothing.letters, nothing.metadata, nothing.numbers, len(nothing.sentence_values)) == (0, b"", (), 0)
    alike = Similarity(nothing, evidence("".join(STORY), "a title"))
    assert (alike.jaccard, alike.containment, alike.title) == (0.0, 0.0, 0.0)
    assert alike.length_ratio == float("inf")


@pytest.mark.parametrize("packed", [b"S12345678", b"x" * 400, b"\xff" * 309])
def test_invalid_bytes_read_as_empty_evidence(packed: bytes) -> None:
    """A log may contain what another program wrote: such a page is kept, and nothing fails."""
    assert (Evidence(packed).metadata, Evidence(packed).shingles, Evidence(packed).terms) == (b"", 0, ())
    assert Similarity(Evidence(packed), evidence("".join(STORY))).jaccard == 0.0


def test_metadata_can_be_read_back() -> None:
    """Metadata is the last part of evidence, or the only one."""
    metadata = evidence("", "", ("a", "b")).metadata
    assert (metadata[:1], len(metadata)) == (b"S", 17)
    assert evidence("".join(STORY), "title", ("b", "a")).metadata == metadata
    assert evidence("").packed == b""


def test_the_evidence_of_a_long_text_is_bounded() -> None:
    """Numbers and sentences are sampled and tokens are cut, so the evidence of any page fits in 15,000 bytes."""
    long = "".join(f"{number} 号车站于第 {number * 7} 天开放。" for number in range(2000))
    for text in (long, "大 12 34 " * 5000):
        assert len(evidence(text, "标题" * 40).packed) < 15_000


def sentences_of(seed: int, number: int) -> list[str]:
    """Sentences of 15 to 45 characters that no other seed has."""
    rng = random.Random(seed)
    return ["".join(chr(rng.randrange(0x4E00, 0x5E00)) for _ in range(rng.randint(15, 45))) for _ in range(number)]


HEAD, OWN = sentences_of(1, 40), sentences_of(2, 140)


def exact(one: list[str], other: list[str]) -> tuple[float, float]:
    """Jaccard similarity and containment of two lists of sentences, by their shingles."""
    ours, theirs = (set(array("Q", distinct_ngrams("".join(text), 5))) for text in (one, other))
    return len(ours & theirs) / len(ours | theirs), len(ours & theirs) / min(len(ours), len(theirs))


def common_values(sentences: list[str]) -> list[int]:
    """The values of sentences that a host repeats."""
    return sorted({value for sentence in sentences for value in evidence(sentence).sentence_values})


@pytest.mark.parametrize("frame", [5, 12, 30])
@pytest.mark.parametrize("hosts", ["one", "two"])
@pytest.mark.parametrize("changed", [0, 2, 6, 20])
def test_common_sentences_are_subtracted(frame: int, hosts: str, changed: int) -> None:
    """Pages in frames have the quantities of their own sentences, as an exact comparison of these gives them."""
    left = HEAD[:frame] if hosts == "one" else HEAD[: frame // 2]
    right = HEAD[:frame] if hosts == "one" else HEAD[frame // 2 : frame]
    ours, theirs = OWN[:20], OWN[changed : 20 + changed // 2]
    common = common_values(HEAD[:frame])
    alike = Similarity(evidence("。".join(left + ours)), evidence("。".join(right + theirs)), common=common)
    share, contained = exact(ours, theirs)
    assert alike.jaccard == pytest.approx(share, abs=0.15)
    assert alike.containment == pytest.approx(contained, abs=0.15)
    sizes = [len("".join(text)) for text in (ours, theirs)]
    assert alike.min_letters == pytest.approx(min(sizes), rel=0.1)
    assert alike.length_ratio == pytest.approx(max(sizes) / min(sizes), rel=0.1)


def test_common_sentences_of_long_pages_are_estimated() -> None:
    """Of more sentences than evidence keeps, the letters of the common ones follow from their share."""
    one, other = HEAD + OWN[:60], HEAD + OWN[30:90]
    alike = Similarity(evidence("。".join(one)), evidence("。".join(other)), common=common_values(HEAD))
    share, contained = exact(OWN[:60], OWN[30:90])
    assert alike.jaccard == pytest.approx(share, abs=0.15)
    assert alike.containment == pytest.approx(contained, abs=0.2)


@given(TEXTS, TEXTS, st.lists(st.sampled_from(STORY), max_size=12))
def test_quantities_without_common_sentences_stay_in_range(one: str, other: str, common: list[str]) -> None:
    """Shares are from 0 to 1, lengths are not negative, and pages of nothing else have nothing in common."""
    alike = Similarity(evidence(one), evidence(other), common=common_values(common))
    for share in (alike.jaccard, alike.containment):
        assert 0.0 <= share <= 1.0
    assert alike.min_letters >= 0
    assert alike.length_ratio >= 1.0
    turned = Similarity(evidence(other), evidence(one), common=common_values(common))
    assert (turned.jaccard, turned.containment) == (alike.jaccard, alike.containment)


def test_pages_of_common_sentences_alone_have_nothing_in_common() -> None:
    """Two error pages of a host are no copies of one another."""
    frame = "。".join(HEAD)
    alike = Similarity(evidence(frame), evidence(frame + "。" + OWN[0]), common=common_values(HEAD))
    assert alike.jaccard < 0.1
    assert alike.min_letters < 100


@given(evidence_pairs(), COMMON, DISTANCES, st.booleans())
def test_all_quantities_are_those_of_sets(
    pair: tuple[bytes, bytes], common: list[int], distance: Distance, same_host: bool
) -> None:
    """For evidence of any kind; that which no page has gives floats, whatever they are."""
    one, other = map(Evidence, pair)
    found = Similarity(one, other, distance, common, same_host)
    if is_of_a_page(one) and is_of_a_page(other):
        expected = PlainSimilarity(one, other, distance, common, same_host)
        for name in Similarity.__annotations__:
            assert (name, getattr(found, name)) == (name, getattr(expected, name))
