"""Find excerpts of other articles and readers' comments: rows of cards under a label.

A card is an element that begins with a link, to the other article or to the writer, and goes on with text. An article
under which ten of them stand is the smaller part of its page, and trafilatura returns the cards. Their form alone does
not tell: the cards of a list page are what it has to say, as are the posts of a forum. The label before the row does:
"related articles", "recommended", "comments", in the words of Chinese and English sites.

Not found: cards under no label or one in another language, and those that begin with a date or a number.
"""

import re
from itertools import chain, islice

from lxml.html import HtmlElement

_LABEL = re.compile(
    r"相[关關]|推[荐薦]|[评評][论論]|跟[贴貼帖]|留言|感[兴興]趣|延伸[阅閱][读讀]"
    r"|\b(?:related|recommended|comments|more from|you (?:may|might)|also like)\b",
    re.IGNORECASE,
)
CARDS = frozenset({"article", "dd", "div", "dl", "li", "section", "table", "tr"})
MAX_LABEL_CHARS = 40
MAX_LABELS = 50
"""Labels of a page that are looked at; for each of them, at most all elements that follow."""
MIN_CARDS = 2
MAX_STEPS = 4
"""Elements that may be nested between a label and the cards, and between a card and its first link."""


def labelled_cards(body: HtmlElement) -> list[HtmlElement]:
    """Return the cards under labels, in document order.

    In a pruned tree: the picture of a card, or a list of its links, is in the way.
    """
    found: set[HtmlElement] = set()
    for label in islice(filter(_is_label, body.iter("*")), MAX_LABELS):
        block = next(iter(label), None)
        if block is None or not _row(block):
            block = _next_outside(label)
        while block is not None and block not in found and (cards := _row(block)):  # hot comments, then new ones
            found.update(cards)
            block = (cards[-1] if block in found else block).getnext()
    return [element for element in body.iter() if element in found]


def _is_label(element: HtmlElement) -> bool:
    text = element.text
    return bool(text and len(text) <= MAX_LABEL_CHARS and _LABEL.search(text))


def _next_outside(label: HtmlElement) -> HtmlElement | None:
    """Return the element after a label, or after the parent in which it is alone; None if text stands between."""
    parent = label.getparent()
    beside = label.getprevious() is not None or label.getnext() is not None
    if parent is not None and not beside and not _has_text(parent.text) and not _has_text(label.tail):
        label = parent
    return None if _has_text(label.tail) else label.getnext()


def _has_text(text: str | None) -> bool:
    return bool(text and text.strip())


def _row(first: HtmlElement) -> list[HtmlElement]:
    """Return the row that begins with an element or with the first one inside it; one card in two may have no link."""
    for _ in range(MAX_STEPS):
        row: list[HtmlElement] = []
        linked = end = 0
        for element in chain((first,), first.itersiblings()):
            if element.tag != first.tag:
                break
            row.append(element)
            if _is_card(element):
                linked, end = linked + 1, len(row)
            elif not linked or len(row) - end > 1:
                break
        if linked >= MIN_CARDS:
            return row[:end]
        if not len(first):
            return []
        first = first[0]
    return []


def _is_card(element: HtmlElement) -> bool:
    if element.tag not in CARDS:
        return False
    for _ in range(MAX_STEPS):
        if not len(element) or _has_text(element.text):
            return False
        element = element[0]
        if element.tag == "a":
            return element.get("href") is not None
    return False
