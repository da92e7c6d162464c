"""Sizes at a limit are accepted; one more is refused, with size and limit in the reason."""

from collections.abc import Callable

import pytest

from dedup_service.core.size_limits import (
    MAX_HEADERS,
    MAX_HEADERS_BYTES,
    MAX_KEY_BYTES,
    MAX_NAME_CHARS,
    MAX_RECORD_BYTES,
    MAX_VALUE_BYTES,
    headers_too_large,
    key_too_large,
    name_too_long,
    page_too_large,
    record_too_large,
    value_too_large,
)


@pytest.mark.parametrize(
    ("check", "limit", "reason"),
    [
        (lambda size: page_too_large(bytes(size), 20), 20, "page too large: 21 bytes, limit 20"),
        (lambda size: page_too_large("é" * size, 20), 20, "page too large: 21 characters, limit 20"),
        (record_too_large, MAX_RECORD_BYTES, "the record is larger than 314,572,800 bytes: 314,572,801"),
        (
            lambda size: value_too_large(bytes(size)),
            MAX_VALUE_BYTES,
            "the value has 15,728,641 bytes, the limit is 15,728,640",
        ),
        (lambda size: key_too_large(bytes(size)), MAX_KEY_BYTES, "the key has 98,305 bytes, the limit is 98,304"),
        (lambda size: headers_too_large([("", b"")] * size), MAX_HEADERS, "it has 257 headers, the limit is 256"),
        (
            lambda size: headers_too_large([("é", None), ("a", bytes(size - 3))]),
            MAX_HEADERS_BYTES,
            "the headers have 524,289 bytes, the limit is 524,288",
        ),
        (
            lambda size: name_too_long("id", "é" * size),
            MAX_NAME_CHARS,
            "`id` has 8,193 characters, the limit is 8,192",
        ),
    ],
)
def test_the_limit_itself_is_accepted(check: Callable[[int], str | None], limit: int, reason: str) -> None:
    """Bytes are counted in bytes, as are the names of headers; other strings in characters."""
    assert check(limit) is None
    assert check(limit + 1) == reason


def test_a_record_without_key_and_headers_is_accepted() -> None:
    """A null key has no size."""
    assert key_too_large(None) is None
    assert headers_too_large(()) is None
