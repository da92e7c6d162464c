"""Strings from pages, made safe to display."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.live_stats.display_safe import cut, host_of, shown

ANY = st.text(st.characters(exclude_categories=[]))


@given(ANY)
def test_no_control_or_formatting_character_is_left(text: str) -> None:
    """No lone surrogate or second kind of space is left, either; cleaning twice changes nothing."""
    clean = shown(text)
    assert not {unicodedata.category(character) for character in clean} & {"Cc", "Cs", "Zl", "Zp"}
    assert not {unicodedata.bidirectional(character) for character in clean} & {
        "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
    }  # fmt: skip
    assert shown(clean) == clean
    clean.encode()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("invoice\u202egpj.exe", "invoicegpj.exe"),
        ("\u2067hidden\u2069", "hidden"),
        ("\x1b[2J\x07bell", "[2J bell"),
        ("one\r\nSet-Cookie: a\u2028two", "one Set-Cookie: a two"),
        ("a\u200bb\ufeffc\U000e0041", "abc"),
        ("0 \u00ad 0", "0 0"),
    ],
)
def test_examples(text: str, clean: str) -> None:
    """Markup is kept as text; characters that change other text are removed."""
    assert shown(text) == clean


@given(ANY, st.integers(1, 50))
def test_truncated_text_fits_the_limit(text: str, limit: int) -> None:
    """A text that fits is unchanged."""
    assert len(cut(text, limit)) <= limit
    assert len(text) > limit or cut(text, limit) == text


@given(ANY)
def test_any_text_has_a_host_or_none(text: str) -> None:
    """Nothing raises, and a host contains no other part of a URL."""
    assert not set(host_of(text)) & set("/?#@")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Example.org/a", "example.org"),
        ("http://user:pass@example.org:80/", "example.org"),
        ("http://[::1]:8080/", "[::1]"),
        ("javascript:alert(1)", ""),
        ("", ""),
        ("https://例子.example?x", "例子.example"),
    ],
)
def test_host(url: str, host: str) -> None:
    """The host is in lower case, without user and port."""
    assert host_of(url) == host
