"""Remove what people and portals write around a text that they repost.

At the beginning: `转发:`, `RT @name:`, `//@name:`, `(转载)`, `【快讯】` and the like, also several in a row.
At the end: emoticons in brackets, `[赞][doge]`. In a short text these are a quarter of the letters, and two
posts of one sentence would not be the same. Inside a text nothing is removed: `[广州]` before a headline is
a place.
"""

import re

_LABELS = "转发|转载|转帖|转自|转|转发微博|快讯|最新|最新消息|头条|推荐|热点|分享|repost|rt"
_NAME = r"@[^:\n@]{1,30}"
_MARK = re.compile(
    rf"""\s*(?:
        [(\[【]\s*(?:{_LABELS})\s*[)\]】]:?             # (转), [转], 【快讯】
      | (?://|回复|via\b|转自|转发自?|rt\b)\s*{_NAME}:   # //@name:, rt @name:
      | {_NAME}:
      | (?:转发微博|转发|转载|转帖|转自|repost|rt)(?::|\s+)
      | 转:
    )\s*""",
    re.VERBOSE,
)
STARTS_OF_MARKS, LAST_OF_MARKS = "([【/回v转r@", "]"
"""With what a marker at the beginning begins, but for white space, and with what emoticons at the end end."""

_EMOTICONS = re.compile(r"(?:\[(?:[\u4e00-\u9fff]{1,6}|[a-z]{3,6})\]\s*)+$")
_EMOTICON_CHARS = 200
"""Characters at the end of a text among which emoticons are searched."""


def without_repost_marks(folded: str) -> str:
    """Return a folded text without repost markers; a text of nothing but markers is returned unchanged.

    >>> without_repost_marks("转发微博: rt @晨读笔记: 大桥今天通车[赞][赞]")
    '大桥今天通车'
    """
    start, end = between_repost_marks(folded)
    return folded[start:end]


def between_repost_marks(folded: str) -> tuple[int, int]:
    """Return where the text begins and ends that `without_repost_marks` returns."""
    start = 0
    while mark := _MARK.match(folded, start):
        start = mark.end()
    end = len(folded)
    if folded.endswith(LAST_OF_MARKS) and (emoticons := _EMOTICONS.search(folded, max(start, end - _EMOTICON_CHARS))):
        end = emoticons.start()
    return (start, end) if start < end else (0, len(folded))
