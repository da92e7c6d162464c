"""Tests for the sentences of a text, against regular expressions."""

import re

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.evidence.sentences import ENDS, MIN_SENTENCE, sentence_values, sentences_in_order

TEXTS = st.text(alphabet="ab中文十二〇1 23.,。!\n…é", max_size=60)


def sentences_of(text: str) -> set[str]:
    """Return the sentences of a text: the definition, as a pattern."""
    pieces = re.split(r"[。！？!?；;…؟۔।\n]|\.(?= |$)", text)
    bare = ("".join(filter(str.isalnum, piece)) for piece in pieces)
    return {piece for piece in bare if len(piece) >= MIN_SENTENCE}


def values_of(text: str) -> npt.NDArray[np.uint32]:
    """Return the values of the sentences."""
    return sentence_values(np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32), ENDS)


@given(TEXTS, TEXTS)
def test_texts_share_the_sentences_that_they_share(one: str, other: str) -> None:
    """Texts share as many values as the pattern finds sentences in both."""
    values, sentences = [values_of(text) for text in (one, other)], [sentences_of(text) for text in (one, other)]
    assert [len(found) for found in values] == [len(found) for found in sentences]
    assert len(np.intersect1d(*values)) == len(sentences[0] & sentences[1])
    assert [np.unique(found).tolist() for found in values] == [found.tolist() for found in values]


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
    code_points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    values, places, count = sentences_in_order(code_points, ENDS)
    letters = "".join(filter(str.isalnum, text))
    assert count == len(letters)
    assert np.all(np.diff(places.ravel()) >= 0)
    for value, (start, stop) in zip(values, places, strict=True):
        assert values_of(letters[start:stop]).tolist() == [value]
    assert np.array_equal(np.unique(values), values_of(text))
