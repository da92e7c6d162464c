"""Durations: parsing and formatting."""

import click
import pytest

from dedup_service.interfaces.cli.support.options import format_duration_ms, parse_duration_ms

CONTEXT, PARAMETER = click.Context(click.Command("x")), click.Option(["--kept"])


@pytest.mark.parametrize(
    ("text", "length_ms"),
    [("90s", 90_000), ("30m", 1_800_000), ("12h", 43_200_000), ("7d", 604_800_000), ("forever", -1)],
)
def test_parsing_and_formatting_are_inverse(text, length_ms):
    """A parsed duration is formatted as it was written."""
    assert parse_duration_ms(CONTEXT, PARAMETER, text) == length_ms
    assert format_duration_ms(length_ms) == text


@pytest.mark.parametrize("text", ["", "7", "0d", "-1", "week", "7 days", "1.5h", "٣d"])
def test_anything_else_is_refused_with_examples(text):
    """The message shows valid durations."""
    with pytest.raises(click.BadParameter, match="12h"):
        parse_duration_ms(CONTEXT, PARAMETER, text)
