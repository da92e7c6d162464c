"""Tests for what one call computes of the letters of a page, against the steps one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.evidence.keys import LEVELS, min_hash_keys, packed_keys
from dedup_service.core.evidence.packed import SHINGLE, pack_evidence
from dedup_service.core.evidence.similarity import pack
from dedup_service.core.features.simhash import simhash
from dedup_service.core.splitmix import splitmix64
from dedup_service.core.text.ngrams import distinct_ngrams
from dedup_service.core.text.normalise import letters
from dedup_service.core.text.page_text import PageText, PageTexts
from dedup_service.core.text_features import text_features

TEXTS = st.text(alphabet="ab12 。.\n中文𠮷😀", max_size=60)


@pytest.mark.parametrize("bits", [64, 128])
@given(title=TEXTS, body=TEXTS, members=st.lists(st.sampled_from(["a", "云"])), shingle=st.integers(1, 5))
def test_one_call_gives_what_the_steps_give(bits: int, title: str, body: str, members: list[str], shingle: int) -> None:
    """Counts, fingerprint, evidence and keys are those of the steps, and the title is part of the evidence alone."""
    metadata = pack(members)
    pages = PageTexts.of([PageText.of(title, body), PageText.of(body, "a")])
    features, _ = text_features(pages, [metadata, b""], shingle=shingle, bits=bits)
    body_letters = letters(body)
    ngrams = distinct_ngrams(body_letters, shingle)
    wide = [value | splitmix64(value) << 64 for value in ngrams.tolist()]
    assert (features.letters, features.ngrams) == (len(body_letters), len(ngrams))
    hashes = [value % (1 << bits) for value in wide]
    assert features.body == simhash(hashes, np.ones(len(hashes), np.int64), bits=bits)
    assert features.evidence == pack_evidence(title, body, body_letters, metadata)
    assert features.keys == packed_keys(min_hash_keys(distinct_ngrams(body_letters, SHINGLE), LEVELS))
