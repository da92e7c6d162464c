"""Tables read from files."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.fingerprinter import Fingerprinter
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.profiles import PROFILES, profile_text
from dedup_service.runtime import resources
from dedup_service.runtime.resources import (
    SpaceOptions,
    build_fingerprinter,
    default_lexicon,
    profile_named,
    space_named,
)
from tests.hangs import HANG_S


def test_own_tables_make_another_space(tmp_path: Path) -> None:
    """A custom IDF table or user dictionary changes the space id."""
    idf, words = tmp_path / "idf.txt", tmp_path / "words.txt"
    idf.write_text("大桥 7.5\n通车 6.0\n", encoding="utf-8")
    words.write_text("跨江大桥 1000 n\n", encoding="utf-8")
    options = [SpaceOptions(), SpaceOptions(idf=str(idf)), SpaceOptions(user_words=str(words))]
    assert len({build_fingerprinter(option).space_id for option in options}) == 3
    page = Page(url="u", canonical_url="u", id="u", text="跨江大桥通车")
    assert "跨江大桥" in build_fingerprinter(options[2]).words(page)


def test_a_missing_table_is_a_configuration_error() -> None:
    """The message names the table that cannot be read."""
    with pytest.raises(ConfigurationError, match="IDF table"):
        build_fingerprinter(SpaceOptions(idf="no such file"))


def test_the_word_lists_hold_both_languages() -> None:
    """Stop words and markers are in Chinese and English; comments are left out."""
    lexicon = default_lexicon()
    assert {"的", "the"} <= set(lexicon.stop_words)
    assert {"总之", "综上所述", "但是", "in conclusion", "however"} <= set(lexicon.markers)
    assert not any(word.startswith("#") for word in (*lexicon.stop_words, *lexicon.markers))


def test_threads_share_one_fingerprinter() -> None:
    """Those that begin together read the tables once, and get what one thread gets."""
    resources._built.cache_clear()
    pages = [Page(url="u", canonical_url="u", id=str(n), text=f"第{n}期。新词{n}与旧词。" * 60) for n in range(48)]
    begin = threading.Barrier(4)

    def prepared(page: Page) -> tuple[Fingerprinter, PreparedPage]:
        if int(page.id) < begin.parties:
            begin.wait(HANG_S)
        fingerprinter = build_fingerprinter()
        return fingerprinter, fingerprinter.prepare(page)

    with ThreadPoolExecutor(begin.parties) as pool:
        made = list(pool.map(prepared, pages))
    assert len({id(fingerprinter) for fingerprinter, _ in made}) == 1
    assert [page for _, page in made] == build_fingerprinter().prepare_all(pages)


def test_a_space_file_has_every_option(tmp_path: Path) -> None:
    """Its paths are relative to its folder."""
    file = tmp_path / "space.toml"
    file.write_text(
        'scheme = "wang2019"\nwithout = ["length"]\nunspaced = "pairs"\nbits = 128\nidf = "idf.txt"\n'
        'user_words = "/words.txt"\n[factors]\ntitle = 3\ncombine = "sum"\n'
    )
    assert space_named(str(file)) == SpaceOptions(
        scheme="wang2019",
        factors=("title=3", "combine=sum"),
        without=("length",),
        unspaced="pairs",
        bits=128,
        idf=str(tmp_path / "idf.txt"),
        user_words="/words.txt",
    )
    assert space_named("tf") == SpaceOptions(scheme="tf")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("bits = 63", "bits"),
        ("schema = 'tf'", "unknown field `schema`"),
        ("scheme = 'tff'", "the scheme is one of"),
        ("without = ['body']", "a factor is one of"),
        ("factors = {title = 'big'}", "title"),
        ("unspaced = 'words'", "icu or as pairs"),
        ("idf =", "Invalid value"),
        ("# scheme = 'tf'", "it is empty"),
    ],
)
def test_a_wrong_space_file(tmp_path: Path, text: str, problem: str) -> None:
    """The message names file, problem and remedy."""
    file = tmp_path / "space.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=f"^{re.escape(str(file))}: .*{problem}.*has the fields scheme, "):
        space_named(str(file))
    with pytest.raises(ConfigurationError, match="no space 'tff': give one of twinsieve, "):
        space_named("tff")


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_what_cannot_be_a_file_is_no_space_and_no_profile(name: str) -> None:
    """The error is that of a file that is not there."""
    with pytest.raises(ConfigurationError, match="there is no space"):
        space_named(name)
    with pytest.raises(ConfigurationError, match="there is no profile"):
        profile_named(name)


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    """Editors on Windows write one."""
    file = tmp_path / "space.toml"
    file.write_text("scheme = 'tf'", "utf-8-sig")
    assert space_named(str(file)) == SpaceOptions(scheme="tf")
    file.write_text(profile_text(PROFILES["precise"]), "utf-8-sig")
    assert profile_named(str(file)) == PROFILES["precise"]
