"""Tests for the words of a page: parts of speech, and a user's dictionary."""

from pathlib import Path

from dedup_service.core.features.words import parse_user_words, tagged
from dedup_service.core.page import Page
from dedup_service.runtime import resources
from dedup_service.runtime.jieba_dictionary import parts_of_speech
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter


def tags(text: str, options: SpaceOptions | None = None) -> dict[str, str]:
    """Return the words of a text with their parts of speech."""
    options = options or SpaceOptions(scheme="zhang2020")
    table = build_fingerprinter(options)._table(Page(url="", canonical_url="", id="", text=text))
    return {word.word: tag for word, tag in zip(table.words, table.tags, strict=True)}


def test_tags_name_nouns_verbs_and_numbers() -> None:
    """Each Chinese word comes with its part of speech, those that the dictionary lacks by what their letters are."""
    found = tags("市长采访工人 3.5% ab12，中华人民共和国")
    assert (found["市长"][0], found["采访"][0], found["中华人民共和国"]) == ("n", "v", "ns")
    assert (found["3.5%"], found["ab12"]) == ("m", "eng")
    assert set(tags("the mayor speaks 12")) == {"mayor", "speaks", "12"}
    assert set(tags("the mayor speaks 12").values()) == {"x"}


def test_modal_particles_are_no_words_where_parts_of_speech_count() -> None:
    """吗 and 呢 say nothing of the content; a scheme that weighs no parts of speech does not know them."""
    words = build_fingerprinter(SpaceOptions(scheme="tf"))._preparer.words(
        Page(url="", canonical_url="", id="", text="大桥通车了吗，呢啵")
    )
    particles = {word.word for word in words if parts_of_speech().get(word.word) == "y"}
    kept = {word.word for word in tagged(words, parts_of_speech()).words}
    assert kept == {word.word for word in words} - particles


def test_words_of_a_user_dictionary_are_folded_as_texts_are() -> None:
    """Capital letters, traditional script, full width and the byte order mark of a file would match no text."""
    lines = ["\ufeff近重复网页 100 n", "", "GPT模型", "雲計算平臺 nz", "ＡＩ芯片", "\ufeff"]
    assert parse_user_words(lines) == {"近重复网页": "n", "gpt模型": "x", "云计算平台": "nz", "ai芯片": "x"}


def test_a_users_word_has_the_tag_of_its_line(tmp_path: Path) -> None:
    """It is one word, and its tag goes before that of jieba."""
    file = tmp_path / "words.txt"
    file.write_text("近重复网页 100 v\n大桥 ns\n", encoding="utf-8")
    found = tags("近重复网页与大桥", SpaceOptions(scheme="zhang2020", user_words=str(file)))
    assert (found["近重复网页"], found["大桥"]) == ("v", "ns")
    resources._built.cache_clear()
