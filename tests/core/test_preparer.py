"""The native preparation of pages gives what the fingerprinter gives."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import PreparedText, Preparer
from dedup_service.core.errors import ConfigurationError, InternalError
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.space import Space
from dedup_service.core.text.segmentation.unicode_words import IcuSegmenter, UnicodeSegmenter
from dedup_service.runtime.jieba_dictionary import jieba_folder
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter, default_lexicon, jieba_idf

SPACES = {
    "pairs": SpaceOptions(unspaced="pairs"),
    "icu": SpaceOptions(unspaced="icu"),
    "wide": SpaceOptions(unspaced="pairs", bits=128),
    "tf-log": SpaceOptions(scheme="tf", factors=("tf=log", "hash=java", "marker=3", "marker_by=word"), unspaced="icu"),
    "sum": SpaceOptions(factors=("combine=sum", "with_title=off", "min_chars=3"), unspaced="pairs"),
}
PIECES = st.sampled_from(
    [
        *(
            "跨江大桥下月初通车，总之，车程将缩短。",
            "臺灣的雲計算體系",
            "However, farmers say. In conclusion, no! ",
            "橋が開通した",
        ),
        *(
            "สวัสดีครับ ขอบคุณน้ำ",
            "대교가 개통했다 ",
            "أَحْمَد ٣٫٥ ",
            "2008-08-15 ",
            "$1,250.5 million ",
            "一百二十万元",
            "-5°C ",
        ),
        *("转发微博: ", "[赞]", "\n", " ", "&ldquo;", "x² ½ ", "\ud800", "😀🇨🇳", "e\u0301", "a", "的"),
    ]
)
TEXTS = st.lists(PIECES, max_size=25).map("".join)


def preparer(space: Space, icu: bool, idf: str = "") -> Preparer:
    """The preparer of a space with the package's tables."""
    lexicon = default_lexicon()
    return Preparer(
        space,
        jieba=jieba_folder(),
        idf=idf or jieba_idf(),
        stop_words=sorted(lexicon.stop_words),
        markers=lexicon.markers,
        icu=IcuSegmenter(UnicodeSegmenter()).cut if icu else None,
    )


PREPARERS = {
    name: preparer(build_fingerprinter(options).space, options.unspaced == "icu") for name, options in SPACES.items()
}


def page(title: str, text: str, lang: str | None = None, **fields: object) -> Page:
    """A page."""
    return Page(url="", canonical_url="", id="", title=title, text=text, lang=lang, **fields)  # type: ignore[arg-type]


def values(prepared: PreparedPage | PreparedText) -> list[object]:
    """All that is made of the texts."""
    print_ = prepared.fingerprint if isinstance(prepared, PreparedPage) else prepared
    fields = ("body_hash", "text_hash", "evidence", "keys", "reason")
    return [print_.words, print_.body, *(getattr(prepared, field) for field in fields)]


@given(
    st.lists(st.tuples(TEXTS, TEXTS, st.sampled_from([None, "zh-CN", "ja", ""])), max_size=5),
    st.sampled_from([*SPACES]),
)
def test_every_field_is_the_fingerprinters(texts: list[tuple[str, str, str | None]], name: str) -> None:
    """Of any texts, languages, metadata and problems, in every kind of space."""
    members = [text for *_, text, _ in texts]
    pages = [page(*text, keywords=tuple(members), tags=("Tag", ""), references=("tag",)) for text in texts]
    pages.append(page("t", "text " * 50, problem="page too large"))
    fingerprinter, native = build_fingerprinter(SPACES[name]), PREPARERS[name]
    expected = list(map(values, fingerprinter.prepare_all(pages)))
    assert list(map(values, native.prepare(pages))) == expected
    assert list(map(values, native.prepare(pages * 20, threads=2))) == expected * 20
    for one in pages:
        assert [word.word for word in native.words(one)] == fingerprinter.words(one)


def test_a_fault_of_the_icu_function_is_reported() -> None:
    """An exception, or words that are not those of the text, are faults of ours."""

    def fail(_: str) -> list[str]:
        raise ValueError("no dictionary")

    space, idf = build_fingerprinter(SPACES["icu"]).space, "a 1\n"
    for cut, message in ((fail, "no dictionary"), (lambda _: ["x"], "have 1 characters, and the text has")):
        native = Preparer(space, jieba=jieba_folder(), idf=idf, stop_words=(), markers=(), icu=cut)
        with pytest.raises(InternalError, match=message):
            native.prepare([page("", "ขอบคุณ")])


def test_tables_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    """The message names the file or the line."""
    space = build_fingerprinter(SPACES["pairs"]).space
    with pytest.raises(ConfigurationError, match="IDF table, line 2: expected 'word value', got 'b'"):
        preparer(space, icu=False, idf="a 1\nb\n")
    with pytest.raises(ConfigurationError, match="dict.txt"):
        Preparer(space, jieba=tmp_path, idf="", stop_words=(), markers=())
