"""Java's properties format: what Java made of the same texts, and a slow model of its rules."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.kafka.client.config import PropertiesError, parse

BY_JAVA = json.loads((Path(__file__).parent / "properties_by_java.json").read_text())
"""[text, pairs]: what `java.util.Properties.load` of Java 17 put for the text, null where it raised."""

PIECES = [*"\\\\\\\\\\\n\n\n\r=: \t\f#!abutnrfé\x0b\x85\u2028\"'", "\r\n", "\\u0041", "\\ud83d\\ude00", "pass"]


def entries(text: str) -> list[list[str]]:
    """Names and values."""
    return [[entry.name, entry.value] for entry in parse(text)]


def test_texts_are_read_as_java_read_them() -> None:
    """Name for name, value for value, in the same order."""
    for text, pairs in BY_JAVA:
        if pairs is None:
            with pytest.raises(PropertiesError):
                entries(text)
        else:
            assert entries(text) == pairs, text


@given(
    pairs=st.lists(
        st.tuples(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8"))), max_size=5
    )
)
def test_what_is_written_with_escapes_is_read_back(pairs: list[tuple[str, str]]) -> None:
    """Any text can be a value, if each of its UTF-16 units is written as an escape."""
    lines = [f"{escape(name)}={escape(value)}\n" for name, value in pairs]
    assert entries("".join(lines)) == [list(pair) for pair in pairs]


def escape(text: str) -> str:
    """The text as escapes."""
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


@given(text=st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    """An error names a line that exists; nothing else is raised."""
    assert 0 <= refused_line(text) <= len(text) + 1


def refused_line(text: str) -> int:
    """The line of the first error, 0 if there is none."""
    try:
        list(parse(text))
    except PropertiesError as error:
        return error.line
    return 0


def test_the_repr_of_an_entry_has_no_value() -> None:
    """It may be a password."""
    assert "hidden" not in repr(list(parse("sasl.password=hidden")))
