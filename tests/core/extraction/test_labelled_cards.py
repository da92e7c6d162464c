"""Tests for excerpts of other articles and comments, which are found by the label above them."""

import pytest

from dedup_service.core.extraction import extract
from tests.core.extraction.pages import PARAGRAPHS_EN, PARAGRAPHS_ZH, RELATED_ZH, news_page

NOTICE_ZH = "图书馆提醒读者，周六上午因电路检修暂停开放半天，已预约的自习座位自动顺延到当天下午，还书箱照常使用。"
EXCERPTS_ZH = (
    "调整后的首班车提前到清晨五点四十分，末班车推迟到夜里十一点半，换乘通道也将同步延长开放，方便夜班职工……",
    "园方介绍，今年入春以来气温偏高，东门一带的早樱已经开到七成，预计周末前后进入盛花期，建议游客错峰前往……",
    "改造历时四个月，地面重新铺设了防滑砖，摊位从六十个增加到八十二个，还添置了公平秤和免费的行李推车……",
)
EXCERPTS_EN = (
    "The ferry will leave the north quay every forty minutes from May, and bicycles travel free before nine.",
    "Volunteers counted eleven pairs of terns on the sandbank, three more than in the spring of last year.",
    "The lighthouse keeper's cottage reopens as a small museum with charts lent by the families of pilots.",
)


def portal(article: str, label: str, cards: str, title: str = "周六上午暂停开放半天") -> str:
    """Return a portal's page with cards below the article, in a column without a name that says so."""
    return (
        f'<html><head><title>{title}</title></head><body><div class="wrap"><div class="left"><h1>{title}</h1>'
        f'<div class="con">{article}</div><div class="xg">{label}{cards}</div></div></div></body></html>'
    )


def teasers(excerpts: tuple[str, ...] = EXCERPTS_ZH) -> str:
    """Return a list of other articles: each has a linked title and the beginning of its text."""
    items = (f'<li><a href="/{n}">{RELATED_ZH[n]}</a><p>{text}</p></li>' for n, text in enumerate(excerpts))
    return f"<ul>{''.join(items)}</ul>"


@pytest.mark.parametrize("label", ["<b>相关文章</b>", "<h3>您可能感兴趣的文章</h3>", "<div><h4>相關推薦</h4></div>"])
def test_short_article_above_longer_excerpts(label: str) -> None:
    """A notice above excerpts that are together three times as long is the text, and they are not in it."""
    text = extract(portal(f"<p>{NOTICE_ZH}</p><p>{PARAGRAPHS_ZH[3]}</p>", label, teasers())).text
    assert NOTICE_ZH in text
    assert not any(excerpt[:10] in text for excerpt in EXCERPTS_ZH)


def test_english_excerpts() -> None:
    """The same on an English page."""
    article = "".join(f"<p>{paragraph}</p>" for paragraph in PARAGRAPHS_EN)
    text = extract(portal(article, "<h3>You may also like</h3>", teasers(EXCERPTS_EN), "Old pier to be rebuilt")).text
    assert PARAGRAPHS_EN[1] in text
    assert not any(excerpt[:20] in text for excerpt in EXCERPTS_EN)


def comment(name: str, words: str) -> str:
    """Return a comment in a frame of today, whose classes say nothing; without a name its writer is not linked."""
    writer = f'<a href="/u/{name}">{name}</a> [江城网友]' if name else "江城网友 06-03"
    return f'<div class="tie"><div><div class="by">{writer}</div><p class="words">{words}</p></div></div>'


def test_hot_and_new_comments() -> None:
    """Both lists of comments under one label are removed, anonymous comments between others too."""
    hot = [("山间一叶", "停半天而已，早点通知就很好，上次停电是到了门口才知道的"), ("", "还书箱能用就行")]
    new = [("老街旧事", "自习室什么时候能再多放几张桌子，期末根本约不上"), ("纸上谈", "下午去看看")]
    lists = "".join(f"<div>{''.join(comment(*one) for one in row)}</div>" for row in (hot + new[:1], new))
    label = '<p class="tip">网友评论仅供其表达个人看法</p>'
    text = extract(portal("".join(f"<p>{p}</p>" for p in PARAGRAPHS_ZH), label, lists)).text
    assert PARAGRAPHS_ZH[0] in text
    assert not any(words in text for _, words in hot + new)


def test_rows_without_a_label_stay() -> None:
    """The excerpts of a list page are what it has to say, and no label calls them others."""
    text = extract(portal(f"<p>{NOTICE_ZH}</p>", "<h3>本周要闻</h3>", teasers())).text
    assert all(excerpt[:10] in text for excerpt in EXCERPTS_ZH)


def test_label_before_paragraphs() -> None:
    """Paragraphs that begin with a link stay, as they are what the section on related plans says."""
    paragraphs = "".join(f'<p><a href="/{n}">方案{n}</a></p><p>{text}</p>' for n, text in enumerate(PARAGRAPHS_ZH))
    text = extract(portal("<p>" + NOTICE_ZH + "</p>", "<h2>相关方案</h2>", paragraphs)).text
    assert all(paragraph in text for paragraph in PARAGRAPHS_ZH)


def test_article_that_speaks_of_comments() -> None:
    """The words of a label inside a sentence, or in a short paragraph, remove nothing."""
    paragraphs = (*PARAGRAPHS_ZH[:2], "读者的评论大多赞成这项安排。", *PARAGRAPHS_ZH[2:])
    assert extract(news_page(paragraphs)).text == "\n".join(paragraphs)


def test_page_of_comments_alone() -> None:
    """A page that has nothing but the comments keeps them."""
    rows = "".join(comment(f"读者{n}", words) for n, words in enumerate(EXCERPTS_ZH))
    assert EXCERPTS_ZH[1] in extract(portal("", "<h3>全部评论</h3>", rows)).text
