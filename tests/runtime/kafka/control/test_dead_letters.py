"""Lines of dead letters, as people change them."""

import pytest

from dedup_service.core.errors import RecordError
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.control.dead_letters import message_of

PAGE = rb'"value": "{\"url\": \"https://a.example/\"}"'


def test_a_line_needs_a_value_alone() -> None:
    """Keys that the list adds are not read; a key and headers may be missing, null, or bytes."""
    value = b'{"url": "https://a.example/"}'
    assert message_of(b"{" + PAGE + b', "place": "here", "more": 1}', "pages") == Message("pages", value)
    line = b"{" + PAGE + b', "key": {"base64": "/w=="}, "headers": [["a", null], ["b", "c"]]}'
    assert message_of(line, "pages") == Message("pages", value, b"\xff", (("a", b""), ("b", b"c")))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", "no line of"),
        (b"[]", "no line of"),
        (b'{"value": "\xff"}', "no line of"),
        (rb'{"value": "\ud800"}', "no line of"),
        (b'{"value": {"base64": "x"}}', "no line of"),
        (b"{" + PAGE + b', "headers": [["a"]]}', "no line of"),
        (b'{"value": null}', "the value is null"),
        (b'{"value": "{}"}', "not a page in JSON"),
        (b"{" + PAGE + b', "key": "' + b"k" * 100_000 + b'"}', "key"),
        (b"{" + PAGE + b', "cut": true, "published": "pages/3/18"}', "pages/3/18 has all"),
    ],
)
def test_what_is_no_page_is_refused(line: bytes, problem: str) -> None:
    """With the reason that a service would give, or with what is wrong with the line."""
    with pytest.raises(RecordError, match=problem):
        message_of(line, "pages")
