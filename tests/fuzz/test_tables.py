"""Tables of a space: IDF, user words, and the file in which the Chinese dictionary is kept."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import Preparer, Segmenter
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features.words import parse_user_words
from dedup_service.core.page import Page
from dedup_service.core.text.encoding import without_surrogates
from dedup_service.runtime.jieba_dictionary import jieba_folder
from dedup_service.runtime.resources import build_fingerprinter
from tests.core.hostile import SENTENCE
from tests.fuzz.budget import Budget, within
from tests.fuzz.examples import fuzzed
from tests.fuzz.mutation import mutated, mutated_text

TEXT = "图书馆昨日宣布，从下月起延长周末开放时间。" + SENTENCE
PIECES = (
    "\n",
    " ",
    "\t",
    "图书馆 1.5\n",
    "nan",
    "inf",
    "-0",
    "1e999",
    "1_0",
    "a 1 n\n",
    "\ud800",
    "\0",
    "\u3000",
    "\r\n",
)
TABLES = mutated_text(st.lists(st.sampled_from(PIECES)).map("".join), PIECES).map(without_surrogates) | st.text()
BUILDING = Budget(seconds=20, mebibytes=256)
"""To read all of the dictionary takes a second."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the dictionary in a folder of its own."""
    folder = tmp_path_factory.mktemp("cache")
    Segmenter(jieba_folder(), folder)
    (file,) = folder.iterdir()
    return file


@fuzzed(10)
@given(idf=TABLES, words=st.lists(st.text(max_size=4), max_size=3))
def test_any_text_is_an_idf_table_or_a_clear_error(idf: str, words: list[str], kept: Path) -> None:
    """Only ConfigurationError, which names a line; with a table, and with any list of words, pages are prepared."""
    with within(idf, budget=BUILDING):
        try:
            space, segmenter = build_fingerprinter().space, Segmenter(jieba_folder(), kept.parent)
            preparer = Preparer(space, segmenter, idf=idf, stop_words=words, markers=words, icu=list)
        except ConfigurationError as error:
            assert "IDF table" in str(error)  # noqa: PT017 - most tables are refused
            return
        (prepared,) = preparer.prepare([Page(url="", canonical_url="", id="", text=TEXT)])
    assert prepared.words is not None


@fuzzed(2)
@given(lines=TABLES)
def test_any_lines_are_user_words_or_a_clear_error(lines: str) -> None:
    """Only ConfigurationError; with the words, a text is still cut into all of its characters."""
    with within(lines, budget=BUILDING):
        try:
            words = parse_user_words(lines.splitlines())
        except ConfigurationError:
            return
        assert "".join(Segmenter(jieba_folder(), None, list(words)).cut_chinese(TEXT)) == TEXT


@fuzzed(2)
@given(data=st.data())
def test_a_damaged_dictionary_is_made_again(data: st.DataObject, kept: Path) -> None:
    """Whatever is in the file, texts are cut alike, and the file is as before."""
    good = kept.read_bytes()
    begin = data.draw(st.integers(0, len(good) - 64) | st.integers(0, 64))
    damaged = data.draw(mutated(st.just(good[begin : begin + 64])) | st.binary(max_size=64))
    behind = data.draw(st.sampled_from([good[begin + 64 :], b""]))
    expected = Segmenter(jieba_folder(), kept.parent).cut(TEXT)
    kept.write_bytes(good[:begin] + damaged + behind)
    with within(damaged, budget=BUILDING):
        assert Segmenter(jieba_folder(), kept.parent).cut(TEXT) == expected
    assert kept.read_bytes() == good
