"""XPath expressions as look-ups: the same elements as lxml's XPath selects, whatever the tree."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree
from lxml.html import HtmlElement
from trafilatura import settings as trafilatura_settings
from trafilatura import xpaths

from dedup_service.core.extraction import expressions
from dedup_service.core.extraction.boilerplate import parse
from dedup_service.core.extraction.expressions import MAX_REMEMBERED_CHARS, Expression, ExpressionTable

REGEXP = {"re": "http://exslt.org/regular-expressions"}
OWN = (
    ".//*",
    ".//p",
    "(.//div)[1]",
    ".//div[1]",
    ".//*[self::div or self::p][@id]",
    ".//*[self::div or @id]",
    ".//*[not(self::div or @id='nav')]",
    ".//div[not(.//h1) or @class='story']",
    ".//*[@class=''][1]|(.//p[@id])[1]|.//h1",
    ".//*[contains(translate(@id|@class, 'NM', 'nm'), 'nam') or starts-with(@class|@id, 'sto')]",
    ".//*[contains(@class, '') or starts-with(@id, '')]",
    ".//*[re:test(@class|@id, '^NAV|story$', 'i')][re:test(@style, '')]",
)  # fmt: skip
LISTS = (
    "BODY_XPATH", "COMMENTS_XPATH", "REMOVE_COMMENTS_XPATH", "REMOVE_COMMENTS_AND_LISTS_XPATH", "RAW_TREE_PRUNE_XPATH",
    "OVERALL_DISCARD_XPATH", "TEASER_DISCARD_XPATH", "PRECISION_DISCARD_XPATH", "DISCARD_IMAGE_ELEMENTS",
    "COMMENTS_DISCARD_XPATH",
)  # fmt: skip
THEIRS = (
    trafilatura_settings.BASIC_CLEAN_XPATH.path,
    *(each.path for name in LISTS for each in getattr(xpaths, name)),
)
XPATHS = tuple(etree.XPath(text, namespaces=REGEXP) for text in (*OWN, *THEIRS))

# Words that the expressions look for, from the expressions.
WORDS = sorted(
    {
        word
        for text in (*OWN, *THEIRS)
        for literal in re.findall(r"'([^']*)'", text)
        for word in re.findall(r"[\w -]+", re.sub(r"\(\?[:!]|\\s|\[([^]])[^]]*\]", r"\1", literal))
    }
)
ATTRIBUTES = sorted({name for text in (*OWN, *THEIRS) for name in re.findall(r"@([\w-]+)", text)} | {"title"})
TAGS = (
    "div",
    "p",
    "section",
    "article",
    "main",
    "h1",
    "span",
    "li",
    "ul",
    "item",
    "list",
    "aside",
    "footer",
    "details",
)

VALUES = st.lists(st.sampled_from(WORDS) | st.sampled_from(["x", "", "Nav", "-", " "]), max_size=2).map("".join)
NODES = st.recursive(
    st.tuples(st.sampled_from(TAGS), st.dictionaries(st.sampled_from(ATTRIBUTES), VALUES, max_size=3), st.just(())),
    lambda inner: st.tuples(
        st.sampled_from(TAGS),
        st.dictionaries(st.sampled_from(ATTRIBUTES), VALUES, max_size=2),
        st.lists(inner, max_size=4).map(tuple),
    ),
    max_leaves=12,
)


def tree(node: tuple[str, dict[str, str], tuple[object, ...]]) -> HtmlElement:
    """Return the element of a node: its tag, attributes and children."""
    element = empty()
    add(element, node)
    return element


def empty() -> HtmlElement:
    root = parse(b"<html><body></body></html>")
    assert root is not None
    return root


def add(parent: HtmlElement, node: tuple[str, dict[str, str], tuple[object, ...]]) -> None:
    tag, attributes, children = node
    element = etree.SubElement(parent, tag, attributes)
    for child in children:
        add(element, child)  # type: ignore[arg-type]


def table() -> tuple[ExpressionTable, list[Expression]]:
    own = ExpressionTable(lambda name, value: name == "title")
    found = [own.add(expression) for expression in XPATHS]
    assert all(isinstance(each, Expression) for each in found)
    return own, found  # type: ignore[return-value]


TABLE, FOUND = table()


@given(NODES)
@example(("div", {"class": "cookie", "id": "x"}, (("div", {"id": "x", "class": "cookie"}, ()),)))
def test_expressions_select_what_xpath_selects(node: tuple[str, dict[str, str], tuple[object, ...]]) -> None:
    """Every expression selects the same elements in the same order, in a tree and in a part of it."""
    root = tree(node)
    TABLE.possible.set(expressions.ALL)
    for part in (root, root[-1]):
        for expression, xpath in zip(FOUND, XPATHS, strict=True):
            assert expression(part) == xpath(part), xpath.path


@given(NODES)
def test_a_prepared_tree_gives_the_same(node: tuple[str, dict[str, str], tuple[object, ...]]) -> None:
    """Also without the attributes that nothing depends on, also for XPath, and after elements were renamed."""
    root, prepared = tree(node), tree(node)
    TABLE.prepare(prepared)
    for renamed in (False, True):
        if renamed:
            for element in (*root.iter("li", "ul"), *prepared.iter("li", "ul")):
                element.tag = "item" if element.tag == "li" else "list"
        rows = {element: row for row, element in enumerate(root.iter())}
        prepared_rows = {element: row for row, element in enumerate(prepared.iter())}
        for expression, xpath in zip(FOUND, XPATHS, strict=True):
            expected = [rows[element] for element in xpath(root)]
            assert [prepared_rows[element] for element in expression(prepared)] == expected, xpath.path
            assert [prepared_rows[element] for element in xpath(prepared)] == expected, xpath.path


def test_attributes_that_nothing_depends_on_are_removed() -> None:
    """Of the attributes that no expression looks for, those stay that something else reads."""
    own = ExpressionTable(lambda name, value: name == "title")
    own.add(etree.XPath(".//*[@id='story' or contains(@class, 'post')]"))
    root = parse(b"<body><p class=a id=b>1<p title=a>2<p id=story x=y>3<p class=compost>4")
    assert root is not None
    own.prepare(root)
    assert [dict(element.attrib) for element in root.iter("p")] == [
        {}, {"title": "a"}, {"id": "story", "x": "y"}, {"class": "compost"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "//p", ".//p/a", ".//p[2]", ".//p[@a and @b]", ".//p[@a!='b']", ".//p[last()]", ".//p[count(a)]", ".//@id",
        ".//p[1][@id]", ".//p[@id", ".//a:p", ".//p[string-length(@id)]", "(.//p)", "((.//p)[1])[1]", ".//p[a='b']",
        ".//p[translate(@id, 'ab', 'c')='c']", ".//p[contains(translate(@id, 'ab', 'c'), 'c')]", ".//p[@*]",
        r".//p[re:test(@id, '(a)\1')]", ".//p[re:test(@id, '(?i)a')]", ".//p[contains(text(), 'a')]",
        ".//p[contains(translate(@id, 'ab', 'bc'), 'a')]",
    ],
)  # fmt: skip
def test_what_is_not_understood_stays_xpath(text: str) -> None:
    """Other expressions stay what they are, and the attributes that they may need stay, too."""
    own = ExpressionTable(lambda _name, _value: False)
    if text.endswith("]") or "[@id" not in text:
        expression = etree.XPath(text, namespaces={**REGEXP, "a": "b"})
    else:
        expression = type("Broken", (), {"path": text})()
    assert own.add(expression) is expression
    root = parse(b"<body><p id=a class=b>")
    assert root is not None
    own.prepare(root)
    assert [element.keys() for element in root.iter("p")] == [["id", "class"]]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page with many attributes, or long ones, does not fill the memory; its elements are selected all the same."""
    monkeypatch.setattr(expressions, "MAX_REMEMBERED", 10)
    own = ExpressionTable(lambda _name, _value: True)
    story = own.add(etree.XPath(".//*[contains(@class, 'story')]"))
    long = "x" * MAX_REMEMBERED_CHARS
    marks = "".join(f"<p id=a{n} class=story>{n}<p class='{long} story'>{n}" for n in range(30))
    root = parse(f"<body>{marks}".encode())
    assert root is not None
    own.prepare(root)
    assert len(story(root)) == 60
    assert len(own._bits) <= 10
    assert len(own._uses) <= 10
    assert not any(long in str(key) for key in (*own._bits, *own._uses))


def test_attributes_that_a_negation_looks_for_stay() -> None:
    """An expression for elements without a value keeps that value where it is."""
    own = ExpressionTable(lambda _name, _value: False)
    others = own.add(etree.XPath(".//p[not(@id='story')]"))
    root = parse(b"<body><p id=story>1<p id=a>2<p>3")
    assert root is not None
    own.prepare(root)
    assert [element.text for element in others(root)] == ["2", "3"]
