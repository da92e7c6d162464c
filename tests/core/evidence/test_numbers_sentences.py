"""Tests for the numbers and sentences of a text, against regular expressions."""

import re
from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.evidence.numbers_sentences import KINDS, MIN_SENTENCE, numbers_and_sentences, sampled

TEXTS = st.text(alphabet="ab中文十二〇1 23.,。!\n…é", max_size=60)


def numbers_of(text: str) -> Counter[str]:
    """Return the numbers of a text: the definition, as a pattern."""
    return Counter(re.findall(r"[0-9]+(?:[.,][0-9]+)*|[〇零一二三四五六七八九十百千万亿两]{2,}", text))


def sentences_of(text: str) -> set[str]:
    """Return the sentences of a text: the definition, as a pattern."""
    pieces = re.split(r"[。！？!?；;…؟۔।\n]|\.(?= |$)", text)
    bare = ("".join(filter(str.isalnum, piece)) for piece in pieces)
    return {piece for piece in bare if len(piece) >= MIN_SENTENCE}


def hashes_of(text: str) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the hashes of numbers and of sentences."""
    return numbers_and_sentences(np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32), KINDS)


@given(TEXTS, TEXTS)
def test_texts_share_the_numbers_and_sentences_that_they_share(one: str, other: str) -> None:
    """Texts share as many hashes as the patterns find; a number that occurs twice counts twice."""
    hashes = [hashes_of(text) for text in (one, other)]
    numbers, sentences = [numbers_of(text) for text in (one, other)], [sentences_of(text) for text in (one, other)]
    assert [len(found[0]) for found in hashes] == [sum(counts.values()) for counts in numbers]
    assert [len(found[1]) for found in hashes] == [len(found) for found in sentences]
    common = sum((numbers[0] & numbers[1]).values())
    assert len(np.intersect1d(hashes[0][0], hashes[1][0])) == common
    assert len(np.intersect1d(hashes[0][1], hashes[1][1])) == len(sentences[0] & sentences[1])


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
    assert len(hashes_of(text)[1]) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [("3.5% 于 2026年", 2), ("1,250,000 元", 1), ("第十二条", 1), ("一个人", 0), ("v1.2.3.", 1), ("12十二", 2)],
)
def test_what_is_a_number(text: str, count: int) -> None:
    """Points and commas inside a number belong to it; a single Chinese numeral is a word."""
    assert len(hashes_of(text)[0]) == count


def test_a_sample_is_the_same_part_of_both() -> None:
    """The sample is the smallest hashes, so two large sets with the same members have the same one."""
    values = np.random.default_rng(5).integers(0, 1 << 63, size=500, dtype=np.uint64)
    sample = sampled(values, 48)
    assert len(sample) == 48
    assert sampled(values[::-1], 48).tolist() == sample.tolist() == sorted(set(sample.tolist()))
