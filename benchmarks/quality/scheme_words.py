"""The `words` fingerprints of a page in many spaces at once.

A page is segmented once for all schemes with equal needs. Gives the same values as `Fingerprinter`, as a
test checks, but without evidence and the other channel: the ablation needs fifteen spaces and only this
channel.
"""

from collections.abc import Sequence
from functools import cache, partial

from benchmarks.quality.shingles import body_of
from dedup_service.core.features.hashing import word_hasher
from dedup_service.core.features.idf import IdfTable
from dedup_service.core.features.weighting_schemes import Scheme, scheme_named
from dedup_service.core.features.words import WordCounter, WordNeeds, WordTable
from dedup_service.core.page import Page
from dedup_service.core.text.normalise import fold
from dedup_service.core.text.page_text import PageText
from dedup_service.core.text.segmentation.by_script import ScriptSegmenter
from dedup_service.core.text.segmentation.unicode_words import UnicodeSegmenter
from dedup_service.runtime.jieba_dictionary import chinese_segmenter
from dedup_service.runtime.resources import SpaceOptions, default_lexicon, jieba_idf


def scheme_of(options: SpaceOptions) -> Scheme:
    """Return the scheme that `options` name."""
    return scheme_named(options.scheme, without=options.without, settings=options.factors)


def word_fingerprints(spaces: Sequence[SpaceOptions], page: Page) -> list[int | None]:
    """Return the `words` fingerprint of `page` in each of `spaces`, which differ only in their scheme."""
    text = PageText.of(fold(page.title), body_of(page))
    tables: dict[tuple[WordNeeds, str], WordTable] = {}

    def count_words(needs: WordNeeds, name: str) -> WordTable:
        if (needs, name) not in tables:
            tables[needs, name] = _counter(needs, name).table(text)
        return tables[needs, name]

    schemes = map(scheme_of, spaces)
    return [
        scheme.fingerprint(page.text, partial(count_words, scheme.needs, scheme.hash), bits=64) for scheme in schemes
    ]


@cache
def _counter(needs: WordNeeds, name: str) -> WordCounter:
    hash_word = word_hasher(name)
    segmenter = ScriptSegmenter(chinese_segmenter(), UnicodeSegmenter())
    return WordCounter(segmenter, default_lexicon(), _idf(), needs, lambda word: hash_word(word, 64))


@cache
def _idf() -> IdfTable:
    return IdfTable(jieba_idf())
