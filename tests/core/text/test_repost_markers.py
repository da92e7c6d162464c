"""Tests for the markers around a reposted text."""

import pytest

from dedup_service._native import PageText, between_repost_marks, fold

POST = "大桥今天通车,全长4千米"


@pytest.mark.parametrize(
    "mark",
    [
        *(
            "转发：",
            "转发微博：",
            "转发 ",
            "转：",
            "转帖：",
            "[转]",
            "【转】",
            "【转发】",
            "(转)",
            "（转载）",
            "RT ",
            "RT：",
        ),
        *("RT @阿May在路上: ", "//@每日一读2：", "回复@city_daily：", "转自@老陈说事：", "@老陈说事：", "via @Lin_Q: "),
        *("【快讯】", "【头条】", "转发微博：//@晨读笔记：RT @老陈说事: "),
    ],
)
def test_markers_at_the_beginning_are_removed(mark: str) -> None:
    """One marker or several, however often the text was reposted."""
    assert PageText("", mark + POST).body == fold(POST)


@pytest.mark.parametrize(
    "text", ["转身离开", "[广州]外观有改动", "RTX 显卡到货", "大桥[图]今天通车", "转发微博:", "", "[赞]"]
)
def test_what_belongs_to_the_text_stays(text: str) -> None:
    """Words that begin like a marker, brackets inside a text, and a text of nothing but markers are kept."""
    assert between_repost_marks(fold(text)) == (0, len(fold(text)))


def test_emoticons_at_the_end_are_removed() -> None:
    """Emoticons in brackets, as microblogs write them, are not part of the text."""
    assert PageText("", f"{POST}[赞] [doge][笑哭]").body == fold(POST)
