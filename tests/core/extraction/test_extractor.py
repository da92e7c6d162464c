"""trafilatura with its expressions replaced: the same text, and nothing changed for others."""

import inspect
import re
from typing import Any

import pytest
import trafilatura
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from trafilatura import baseline as _baseline  # noqa: F401 - loads the module
from trafilatura import core, htmlprocessing, main_extractor, utils, xml, xpaths

from dedup_service.core.extraction import extractor as own
from dedup_service.core.extraction.boilerplate import parse, prune
from dedup_service.core.extraction.expressions import Expression
from dedup_service.core.extraction.extractor import READ, READ_IN_CLASS, READ_IN_ID, UNUSED, bare_extraction, extractor
from dedup_service.core.extraction.main_text import _options
from tests.core.extraction.test_expressions import ATTRIBUTES, VALUES

SENTENCES = (
    "The harbour council approved a plan on Tuesday to rebuild the old pier before winter.",
    "Engineers told the meeting that the piles had lost a third of their strength. " * 4,
    "本市图书馆昨日宣布，从下月起延长周末开放时间，读者可以在馆内停留到晚上十点。" * 6,
    "Mail", "word", " ", "\n", "",
)  # fmt: skip
BLOCKS = (
    "div", "div", "p", "p", "section", "article", "main", "ul", "li", "ol", "table", "tr", "td", "th", "h1", "h2",
    "a href=/1", "blockquote", "pre", "code", "br", "hr", "form", "details", "summary", "figure", "dl", "dd", "dt",
    "span", "q", "del", "sub", "strong", "aside", "footer", "graphic src=a.jpg", "math", "header", "label", "time",
)  # fmt: skip
EXTRA = (
    "class=highlight", "class=w3-code", "class=schema-faq-question", "class=hljs-a", "role=presentation", "role=nav",
    "colspan=2", "rowspan=2", "lang=en", "rend=h3", "alttext=x", "target=/1", "data-src=b.png", "title=pier",
)  # fmt: skip
TAGS = st.builds(
    lambda name, attributes, extra: (
        "<" + name + "".join(map(' {0[0]}="{0[1]}"'.format, attributes.items())) + extra + ">"
    ),
    st.sampled_from(BLOCKS),
    st.dictionaries(st.sampled_from(ATTRIBUTES), VALUES, max_size=2),
    st.just("") | st.just("") | st.sampled_from(EXTRA).map(" {}".format),
)
PIECES = TAGS | st.sampled_from(BLOCKS).map(lambda name: f"</{name.split()[0]}>") | st.sampled_from(SENTENCES)
HEADS = st.sampled_from(
    (
        "",
        '<script type="application/ld+json">{"@type": "DiscussionForumPosting"}</script>',
        '<script type="application/ld+json">{"articleBody": "%s"}</script>' % (SENTENCES[0] * 3),
        "<div id=data-preloaded data-preloaded='{&quot;topic_1&quot;: &quot;{\\&quot;post_stream\\&quot;: "
        "{\\&quot;posts\\&quot;: [{\\&quot;cooked\\&quot;: \\&quot;%s\\&quot;}]}}&quot;}'></div>" % (SENTENCES[0] * 3),
    )
)
PAGES = st.builds(
    "<html><head><title>Pier</title></head><body>{}{}</body></html>".format,
    HEADS,
    st.lists(PIECES, max_size=60).map("".join),
)


def text_of(document: Any) -> str | None:
    return None if document is None else document.text


@given(PAGES, st.booleans())
def test_the_text_is_that_of_trafilatura(page: str, pruned: bool) -> None:
    """Whatever the page, and whether or not it was pruned, the text is what trafilatura itself returns."""
    roots = parse(page.encode()), parse(page.encode())
    for root in roots:
        assert root is not None
        if pruned:
            prune(root)
    expected = text_of(trafilatura.bare_extraction(roots[0], options=_options()))
    assert text_of(bare_extraction(roots[1], _options())) == expected


def lists_of(module: Any) -> dict[str, list[Any]]:
    """Return the lists of expressions in a module's names, single ones as lists of one."""
    kinds = etree.XPath, Expression
    named = {name: value if isinstance(value, list) else [value] for name, value in module.items()}
    return {name: value for name, value in named.items() if value and isinstance(value[0], kinds)}


def test_all_expressions_are_understood_and_those_of_others_stay() -> None:
    """Of this version of trafilatura, every expression that we use is replaced, and only in our instances."""
    function, table = extractor()
    ours = lists_of(function.__globals__) | lists_of(function.__globals__["extract_content"].__globals__)
    ours |= lists_of(function.__globals__["baseline"].__globals__)
    assert {name for name in ours if name not in UNUSED} == {
        "BASIC_CLEAN_XPATH", "BODY_XPATH", "DISCARD_IMAGE_ELEMENTS", "OVERALL_DISCARD_XPATH", "RAW_TREE_PRUNE_XPATH",
        "REMOVE_COMMENTS_AND_LISTS_XPATH", "TEASER_DISCARD_XPATH",
    }  # fmt: skip
    assert all(isinstance(each, Expression) for name, value in ours.items() if name not in UNUSED for each in value)
    assert table._is_complete
    for module in (core, main_extractor, xpaths, htmlprocessing):
        assert all(isinstance(each, etree.XPath) for value in lists_of(vars(module)).values() for each in value)
    assert trafilatura.bare_extraction is core.bare_extraction is not function


def test_expressions_for_other_settings_are_not_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists that are left out are not evaluated for a page with little text, for which all steps are tried."""
    function, _ = extractor()

    def fail(_tree: Any) -> list[Any]:
        raise AssertionError("evaluated")

    replaced = 0
    for module in (function.__globals__, function.__globals__["extract_content"].__globals__):
        for name in UNUSED & module.keys():
            monkeypatch.setitem(module, name, [fail])
            replaced += 1
    assert replaced >= len(UNUSED)
    for text in ("word", SENTENCES[1], SENTENCES[0] * 9):
        root = parse(f"<body><div class=comments><p>{text}</p></div><p>{text}</p><div>{text * 9}</div>".encode())
        assert root is not None
        bare_extraction(root, _options())


def test_attributes_read_outside_expressions_are_known() -> None:
    """The attributes that trafilatura's code names outside its expressions are those that we leave in the tree."""
    modules = (core, main_extractor, htmlprocessing, utils, xml, inspect.getmodule(trafilatura.baseline))
    source = "".join(inspect.getsource(module) for module in modules if module is not None)
    read = set(re.findall(r"""\.get\(\s*["']([\w-]+)["']""", source)) | set(re.findall(r"@([a-z][\w-]*)[\]=]", source))
    read |= {name for names in re.findall(r"KEEP_ATTRS = \{(.*?)\}", source) for name in re.findall(r"[\w-]+", names)}
    read |= set(re.findall(r'_span\(cell, "(\w+)"\)', source)) | {"data-src"}
    not_of_elements = {"step", "text", "articleBody", "itemListElement", "mainEntity", "acceptedAnswer", "description"}
    not_of_elements |= {"cooked", "content"}  # the latter of <meta>, for a language that we do not ask for
    assert read - not_of_elements - {"class", "id"} <= READ
    in_class = re.findall(r"""["'](\S+)["'] in \w+\.get\(["']class["']|@class, ?'([\w-]+)'""", source)
    assert {word for pair in in_class for word in pair if word} == set(READ_IN_CLASS)
    assert set(re.findall(r'@id="([\w-]+)"', source)) == set(READ_IN_ID)
    assert own.is_read("data-src-large", "a.png")


@pytest.mark.parametrize(("release", "left"), [(trafilatura.__version__, False), ("99.0.1", True)])
def test_another_trafilatura_gets_all_attributes(monkeypatch: pytest.MonkeyPatch, release: str, left: bool) -> None:
    """Of a release that nobody has checked no attribute is removed: it may read others."""
    monkeypatch.setattr(trafilatura, "__version__", release)
    extractor.cache_clear()
    try:
        root = parse(f"<body><p data-words=many>{SENTENCES[1]}</p></body>".encode())
        assert root is not None
        extractor()[1].prepare(root)
        assert (root.find(".//p[@data-words]") is not None) == left
    finally:
        extractor.cache_clear()
