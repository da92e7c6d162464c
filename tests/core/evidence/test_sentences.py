"""Tests for the sentences of a text, against regular expressions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import PageText, sentences_in_order
from dedup_service.core.evidence.packed import LENGTH_BITS, LETTERS_A_QUARTER, MAX_SENTENCES, Evidence
from tests.made_evidence import evidence_of

MIN_SENTENCE = 6
TEXTS = st.text(alphabet="ab中文十二〇1 23.,。!\n…é", max_size=60)


def sentences_of(text: str) -> set[str]:
    """Return the sentences of a text: the definition, as a pattern."""
    pieces = re.split(r"[。！？!?；;…؟۔।\n]|\.(?= |$)", text)
    bare = ("".join(filter(str.isalnum, piece)) for piece in pieces)
    return {piece for piece in bare if len(piece) >= MIN_SENTENCE}


def values_of(text: str) -> set[int]:
    """Return the values of the sentences."""
    return {value for value, *_ in sentences_in_order(text)[0]}


@given(TEXTS, TEXTS)
def test_texts_share_the_sentences_that_they_share(one: str, other: str) -> None:
    """Texts share as many values as the pattern finds sentences in both."""
    values, sentences = [values_of(text) for text in (one, other)], [sentences_of(text) for text in (one, other)]
    assert [len(found) for found in values] == [len(found) for found in sentences]
    assert len(values[0] & values[1]) == len(sentences[0] & sentences[1])


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("สะพานเปิดวันจันทร์ เรือออกทุกชั่วโมง", 2),
        ("افتتح الجسر اليوم؟ نعم افتتح الجسر", 2),
        ("the bridge opened today. ships follow", 2),
        ("version 1.5 of the bridge opened", 1),
    ],
)
def test_where_a_sentence_ends(text: str, count: int) -> None:
    """A sentence ends at the marks of its language; in Thai, which has none, at a space."""
    assert len(values_of(text)) == count


@given(TEXTS)
def test_sentences_in_order_say_where_they_are(text: str) -> None:
    """The letters between the two places of a sentence are the sentence; sentences do not overlap."""
    found, count = sentences_in_order(text)
    letters = "".join(filter(str.isalnum, text))
    assert count == len(letters)
    places = [place for _, *both in found for place in both]
    assert places == sorted(places)
    for value, start, stop in found:
        assert values_of(letters[start:stop]) == {value}
        quarters = min((stop - start + LETTERS_A_QUARTER // 2) // LETTERS_A_QUARTER, (1 << LENGTH_BITS) - 1)
        assert value & ((1 << LENGTH_BITS) - 1) == quarters


@given(
    st.lists(TEXTS, max_size=20).map("\n".join)
    | st.integers(1, 300).map(lambda count: "\n".join(map(chinese, range(count))))
)
def test_evidence_has_the_smallest_values(text: str) -> None:
    """Of the body as a page has it; and how many sentences there are."""
    values, evidence = values_of(PageText("", text).body), Evidence(evidence_of(text))
    assert evidence.sentence_values == tuple(sorted(values))[:MAX_SENTENCES]
    assert evidence.sentence_count == len(values)


def chinese(number: int) -> str:
    """Return a sentence that no other number has."""
    return "句" * 6 + "".join(chr(ord("甲") + int(digit)) for digit in str(number)) + "。"
