"""Features of the compared systems, computed with their own packages.

Each system gets the body that the filter uses: folded (NFKC, case, traditional to simplified), without a
first line that repeats the title and without repost markers. This is in their favour: on the raw text they
miss the copies in traditional characters, as a `raw` row shows.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import rjieba
import xxhash

from benchmarks.quality.shingles import body_of, ngrams_of
from dedup_service.core.features.simhash import fixed_point, simhash
from dedup_service.core.page import Page

PERMUTATIONS = 128
TOP_TERMS = (50, 200)
WIDTH, MOD = 3, 8
"""Sampled Shingle: words a shingle; hashes divisible by MOD are kept. The paper gives no values."""

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class BaselineFeatures:
    """Features of a page: fingerprints (None without features), minhash uint32[128], sampled uint64[n]."""

    md5: str
    pypi: int | None
    tf: int | None
    tfidf: tuple[int | None, ...]
    minhash: npt.NDArray[np.uint32]
    minhash_raw: npt.NDArray[np.uint32]
    sampled: Words


def features_of(page: Page) -> BaselineFeatures:
    """Return all features of `page`."""
    body = body_of(page)
    words = [word for word in rjieba.cut(body) if any(map(str.isalnum, word))]
    terms = _top_terms(body)
    return BaselineFeatures(
        md5=hashlib.md5("".join(body.split()).encode()).hexdigest(),
        pypi=_pypi(body) if body else None,
        tf=_weighted(list(Counter(words).items())),
        tfidf=tuple(_weighted(terms[:maximum]) for maximum in TOP_TERMS),
        minhash=_minhash(body),
        minhash_raw=_minhash(page.text),
        sampled=_sampled(words),
    )


def _pypi(body: str) -> int:
    from simhash import Simhash  # type: ignore[import-untyped]

    logging.getLogger("simhash").setLevel(logging.ERROR)
    try:
        return int(Simhash(body).value)
    except OverflowError:  # with numpy 2 it cannot count beyond 255; floats give the intended result
        grams = Counter(Simhash(0)._tokenize(body))  # noqa: SLF001
        return int(Simhash([(gram, float(count)) for gram, count in grams.items()]).value)


def _weighted(terms: Sequence[tuple[str, float]]) -> int | None:
    """Return the SimHash of weighted words, hashed with xxh3; the package takes ten times as long."""
    hashes = [xxhash.xxh3_64_intdigest(term.encode()) for term, _ in terms]
    return simhash(hashes, fixed_point(weight for _, weight in terms))


def _top_terms(body: str) -> list[tuple[str, float]]:
    terms: list[tuple[str, float]] = _jieba_terms().extract_tags(body, topK=max(TOP_TERMS), withWeight=True)
    return terms


@cache
def _jieba_terms() -> Any:
    """Return jieba's TF-IDF with rjieba as its tokenizer: the same words in a twentieth of the time."""
    from jieba.analyse import TFIDF

    terms = TFIDF()
    terms.tokenizer = rjieba
    return terms


def _minhash(text: str) -> npt.NDArray[np.uint32]:
    from datasketch import MinHash  # type: ignore[import-untyped]

    shingles = ngrams_of(text) & np.uint64(0xFFFFFFFF)
    minhash = MinHash(num_perm=PERMUTATIONS, seed=1, hashfunc=int)
    if len(shingles):
        minhash.update_batch(shingles.tolist())
    return np.asarray(minhash.hashvalues, np.uint32)


def _sampled(words: list[str]) -> Words:
    runs = {"\0".join(words[at : at + WIDTH]) for at in range(len(words) - WIDTH + 1)}
    hashes = np.array([xxhash.xxh3_64_intdigest(run.encode()) for run in sorted(runs)], np.uint64)
    return np.sort(hashes[hashes % np.uint64(MOD) == 0])
