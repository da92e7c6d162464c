"""Inverse document frequency: how much a word says, from how few pages contain it.

idf(i) = log(|D| / |{j : tᵢ ∈ dⱼ}|) (source: Wang & Wang 2019, section 2; Zhang & He 2020 use the same). The table is
fixed for a space: live weights would move the fingerprints of unchanged pages. The crate reads it
(`native/src/features/lexicon.rs`): a word that it lacks gets its median, as in jieba.
"""

import math
from collections import Counter
from collections.abc import Iterable


def build_idf(pages: Iterable[Iterable[str]], *, min_pages: int = 2) -> list[str]:
    """Count the pages that contain each word, and return the lines of a table, sorted by word.

    pages: the words of each page. Words on fewer than `min_pages` pages are left out and get the default.
    """
    page_counts: Counter[str] = Counter()
    total = 0
    for words in pages:
        page_counts.update(set(words))
        total += 1
    frequent = sorted((word, count) for word, count in page_counts.items() if count >= min_pages)
    return [f"{word} {math.log(total / count):.6f}\n" for word, count in frequent]
