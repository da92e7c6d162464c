"""Segmenters of Japanese, Korean and Thai: their effect on the `words` channel, and their processor time.

    python -m benchmarks.language_segmenters [--language ja|ko|th] [--seed N]

All segmenters get the same pages (`benchmarks.language_pages`), folded alike, with the same stop words and
weights. The k is the best one on half 0; figures are of half 1, times in milliseconds of processor time. A
segmenter whose library is not installed is skipped: icu4py, SudachiPy with sudachidict-small, fugashi with
unidic-lite, budoux, tinysegmenter, kiwipiepy, pythainlp, nlpo3. docs/languages.md has the table.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import regex
from rich.console import Console
from rich.table import Table

from benchmarks.language_pages import stream_of
from benchmarks.languages import by_channel
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features.idf import IdfTable
from dedup_service.core.fingerprinter import Fingerprinter
from dedup_service.core.text.normalise import fold
from dedup_service.core.text.segmentation import IcuSegmenter, Segmenter, UnicodeSegmenter
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter, default_lexicon, jieba_idf

Cut = Callable[[str], list[str]]
_AM, _WHOLE_AM = "\u0e4d\u0e32", "\u0e33"
_HANGUL = regex.compile(r"\p{Hangul}{3,}")


class _CutSegmenter(Segmenter):
    """A segmenter from a function that cuts a text into words; it does not tag them."""

    def __init__(self, cut: Cut) -> None:
        self._cut = cut

    def cut(self, text: str) -> list[str]:
        return self._cut(text)

    def tag(self, text: str) -> list[tuple[str, str]]:
        return [(word, "x") for word in self._cut(text)]


def _sudachi() -> Cut:
    sudachi = import_module("sudachipy")
    tokenizer = sudachi.Dictionary(dict="small").create(mode=sudachi.SplitMode.C)
    return lambda text: [word.surface() for word in tokenizer.tokenize(text)]


def _fugashi() -> Cut:
    tagger = import_module("fugashi").Tagger("-Owakati")
    return lambda text: [word for line in text.split("\n") for word in (*tagger.parse(line).split(" "), "\n")]


def _budoux() -> Cut:
    cut: Cut = import_module("budoux").load_default_japanese_parser().parse
    return cut


def _tinysegmenter() -> Cut:
    cut: Cut = import_module("tinysegmenter").TinySegmenter().tokenize
    return cut


def _kiwi() -> Cut:
    kiwi = import_module("kiwipiepy").Kiwi(num_workers=1)
    return lambda text: [word.form for word in kiwi.tokenize(text)]


def _syllable_pairs() -> Cut:
    cut = UnicodeSegmenter().cut
    return lambda text: [
        piece
        for word in cut(text)
        for piece in ([a + b for a, b in pairwise(word)] if _HANGUL.fullmatch(word) else [word])
    ]


def _newmm() -> Cut:
    tokenize = import_module("pythainlp.tokenize").word_tokenize
    return lambda text: [word.replace(_WHOLE_AM, _AM) for word in tokenize(text.replace(_AM, _WHOLE_AM))]


def _nlpo3() -> Cut:
    nlpo3 = import_module("nlpo3")
    folder = Path(str(import_module("pythainlp").__file__)).parent
    nlpo3.load_dict(str(folder / "corpus" / "words_th.txt"), "words_th")
    return lambda text: [
        word.replace(_WHOLE_AM, _AM) for word in nlpo3.segment(text.replace(_AM, _WHOLE_AM), "words_th")
    ]


_OURS: dict[str, Callable[[], Cut]] = {
    "boundaries and pairs": lambda: UnicodeSegmenter().cut,
    "ICU": lambda: IcuSegmenter(UnicodeSegmenter()).cut,
}
SEGMENTERS: dict[str, dict[str, Callable[[], Cut]]] = {
    "ja": {**_OURS, "SudachiPy": _sudachi, "fugashi": _fugashi, "budoux": _budoux, "tinysegmenter": _tinysegmenter},
    "ko": {"boundaries": _OURS["boundaries and pairs"], "pairs of syllables": _syllable_pairs, "kiwipiepy": _kiwi},
    "th": {**_OURS, "newmm": _newmm, "nlpo3": _nlpo3},
}


def rows_of(language: str, seed: int) -> Iterator[list[str]]:
    """Yield the figures of each segmenter; `not installed` for those whose library is missing."""
    stream = stream_of(language, seed)
    space = build_fingerprinter(SpaceOptions(unspaced="pairs")).space
    texts = [fold(page.text) for page in stream.pages]
    for name, make in SEGMENTERS[language].items():
        try:
            cut = make()
        except (ImportError, ConfigurationError):
            yield [name, "not installed"]
            continue
        fingerprinter = Fingerprinter(space, _CutSegmenter(cut), default_lexicon(), IdfTable(jieba_idf()))
        prepared = [fingerprinter.prepare(page) for page in stream.pages]
        began = time.process_time()
        for text in texts:
            cut(text)
        milliseconds = (time.process_time() - began) / len(texts) * 1e3
        channel, best = list(by_channel(stream, prepared, "words"))[-1]
        yield [name, channel, f"{best.precision:.3f}", f"{best.recall:.3f}", f"{best.f1:.3f}", f"{milliseconds:.2f}"]


def main() -> None:
    """Print a table for each language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", choices=list(SEGMENTERS), action="append", help="may be repeated (default: all)")
    parser.add_argument("--seed", type=int, default=6, help="seed of the pages (default: 6)")
    arguments = parser.parse_args()
    for language in arguments.language or SEGMENTERS:
        table = Table("segmenter", "channel", "P", "R", "F1", "ms a page", title=language)
        for row in rows_of(language, arguments.seed):
            table.add_row(*row)
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
