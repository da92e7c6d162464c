"""The segmentation of scripts without spaces is part of the space and of its name."""

import pytest

from dedup_service._native import fold
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.page import Page
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter, default_lexicon

JAPANESE = Page(url="u", canonical_url="u", id="u", text="東京で新しい図書館が開館した。")


def test_pairs_need_no_library() -> None:
    """The space does not depend on installed packages: by default, scripts without spaces are cut into pairs."""
    fingerprinter = build_fingerprinter()
    assert fingerprinter.space.unspaced == "pairs"
    assert fingerprinter.space_id.startswith("twinsieve-")
    assert "書館" in "".join(fingerprinter.words(JAPANESE)).replace("书馆", "書館")


def test_icu_makes_another_space() -> None:
    """Its id and value name ICU; Chinese and English pages have the same fingerprints in both spaces."""
    pytest.importorskip("icu4py", reason="the extra `languages` is not installed")
    icu, pairs = (build_fingerprinter(SpaceOptions(unspaced=name)) for name in ("icu", "pairs"))
    assert icu.space.unspaced.startswith("ICU ")
    assert icu.space_id.startswith("twinsieve-icu-")
    assert icu.fingerprint(JAPANESE) != pairs.fingerprint(JAPANESE)
    for text in ("市图书馆将于下月延长开放时间。", "The library stays open longer."):
        page = Page(url="u", canonical_url="u", id="u", title=text, text=text)
        assert icu.fingerprint(page) == pairs.fingerprint(page)


def test_an_unknown_name_is_refused() -> None:
    """The error names the value and the choices."""
    with pytest.raises(ConfigurationError, match="icu or as pairs, got 'mecab'"):
        build_fingerprinter(SpaceOptions(unspaced="mecab"))


def test_stop_words_of_other_languages_do_not_affect_english() -> None:
    """German articles that are also English words are not stop words."""
    words = set(default_lexicon().stop_words)
    assert {"und", fold("إلى"), "และ", "これ", "그리고"} <= words
    assert not {"die", "war", "man", "hat", "den", "bin"} & words
