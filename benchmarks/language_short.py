"""The bound `min_letters` by language: how often short texts that differ in one fact are called duplicates.

    python -m benchmarks.language_short [--count N] [--seed N]

A text with fewer letters than `min_letters` of a profile must be equal, letter for letter. The bound counts
letters, and letters carry more or less information in different languages. Printed: letters a word, letters
of fifty words, and, of pairs with fewer than fifty words that differ in one name, number, date or place, the
share that the profile `balanced` merges at each bound. The pairs are generated from the seed by
`benchmarks.language_pages`. Counting words needs the extra `languages`.
"""

import argparse
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from benchmarks.language_pages import LANGUAGES, short_pairs
from dedup_service._native import PageText, Segmenter, fold, is_chinese
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.page import Page
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.text.icu_words import icu_words
from dedup_service.runtime.jieba_dictionary import cache_folder, jieba_folder
from dedup_service.runtime.resources import build_fingerprinter

BOUNDS = (64, 120, 160, 200, 240, 300, 360)
FEW_WORDS = 50


def evidence_of(text: str) -> Evidence:
    """Return the evidence of a page with this text and no title."""
    return Evidence(build_fingerprinter().prepare(Page(url="", canonical_url="", id="", text=text)).evidence)


def merged(one: Evidence, other: Evidence, bound: int) -> bool:
    """Return whether a row of the profile `balanced` holds, with `bound` in place of its `min_letters`."""
    rows = [replace(row, min_letters=bound) if row.min_letters else row for row in PROFILES["balanced"].verified]
    return any(row.holds(Similarity(one, other)) for row in rows)


def words_in(folded: str, segmenter: Segmenter) -> int:
    """Return the number of words of a folded text."""
    pieces = segmenter.cut_chinese(folded) if is_chinese(folded) else icu_words(folded)
    return sum(any(map(str.isalnum, piece)) for piece in pieces)


def row_of(language: str, arguments: argparse.Namespace) -> list[str]:
    """Return the figures of one language."""
    segmenter = Segmenter(jieba_folder(), cache_folder())
    pairs = short_pairs(language, arguments.count, arguments.seed)
    words = [words_in(fold(text), segmenter) for text, _ in pairs]
    a_word = sum(len(PageText("", text).letters) for text, _ in pairs) / sum(words)
    short = [pair for pair, count in zip(pairs, words, strict=True) if count < FEW_WORDS]
    evidence = [(evidence_of(one), evidence_of(other)) for one, other in short]
    shares = [sum(merged(*pair, bound) for pair in evidence) / len(evidence) for bound in BOUNDS]
    return [language, f"{a_word:.1f}", f"{FEW_WORDS * a_word:.0f}", str(len(short)), *(f"{x:.1%}" for x in shares)]


def main() -> None:
    """Print a row for each language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=600, help="pairs of each language (default: 600)")
    parser.add_argument("--seed", type=int, default=6, help="seed of the pairs (default: 6)")
    arguments = parser.parse_args()
    table = Table("language", "letters a word", "of 50 words", "short pairs", *(f"merged, {b}" for b in BOUNDS))
    for language in LANGUAGES:
        table.add_row(*row_of(language, arguments))
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
