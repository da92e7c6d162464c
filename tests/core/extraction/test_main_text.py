"""Tests for the limits on what trafilatura is given, and for what it does not need."""

import pytest
from lxml.html import HtmlElement

from dedup_service.core.extraction.boilerplate import parse
from dedup_service.core.extraction.main_text import CHARS_A_LINK, UNREAD, main_text


def read(element: HtmlElement) -> int:
    """Characters that are read for an element: its texts, those of the elements inside it, and what links add."""
    texts = len(element.text or "") + sum(read(child) + len(child.tail or "") for child in element)
    return texts + CHARS_A_LINK * (element.tag == "a")


def copied(element: HtmlElement) -> int:
    """What is read for an element, its own texts once for each child, and the same of the elements inside it."""
    direct = len(element.text or "") + sum(len(child.tail or "") for child in element)
    children = [child for child in element if child.tag not in ("br", "hr")]
    return read(element) + direct * len(children) + sum(map(copied, element))


def test_attributes_that_are_removed_change_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same text is found whether or not the attributes are there."""
    sentence = "The harbour council approved a plan on Tuesday to rebuild the old pier before winter. "
    attributes = " ".join(f"{name}=/1" for name in UNREAD)
    block = f"<p {attributes}>{sentence}<a {attributes}>pier</a></p><table {attributes}><tr><td {attributes}>1</table>"
    page = f"<html><body {attributes}><div class=entry {attributes}><h1 {attributes}>Pier</h1>{block * 5}</div></body>"

    def text() -> str:
        root = parse(page.encode())
        assert root is not None
        return main_text(root, len(page))

    without = text()
    monkeypatch.setattr("dedup_service.core.extraction.main_text.UNREAD", ())
    assert sentence.strip() in without
    assert text() == without
