"""Untrusted text on a terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.interfaces.terminal_safe import terminal_safe


@given(st.text())
def test_no_unsafe_character_is_left(text: str) -> None:
    """No control or reordering character, surrogate or line end, whatever the text."""
    left = {unicodedata.category(character) for character in terminal_safe(text) if character not in "\u200c\u200d"}
    assert not left & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(st.text(st.characters(categories=["L", "N", "P", "S", "M", "Zs"])))
def test_visible_characters_are_unchanged(text: str) -> None:
    """Letters of every script, marks, signs and spaces."""
    assert terminal_safe(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("\u202egpj.exe", "<U+202E>gpj.exe"),
        ("zero\u200bwidth", "zero<U+200B>width"),
        ("\x9b31m", "<U+009B>31m"),
        ("\x7f", "␡"),
        ("two\nlines\tand\r", "two lines and "),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("\ud800", "<U+D800>"),
    ],
)
def test_unsafe_characters_are_shown(text: str, shown: str) -> None:
    """Each is shown as a control picture or as a code point."""
    assert terminal_safe(text) == shown
