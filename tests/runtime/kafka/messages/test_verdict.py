"""The message of a verdict is the line of `filter` with the place of its page."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.log_records import Source
from dedup_service.core.verdict import Distance, Verdict, VerdictKind
from dedup_service.runtime.kafka.messages.verdict import read_verdict, verdict_value
from dedup_service.runtime.verdict_json import verdict_line

texts = st.text(max_size=20)
bits = st.none() | st.integers(0, 64)
verdicts = st.builds(
    Verdict,
    sequence=st.integers(0, 2**53),
    id=texts,
    url=texts,
    kind=st.sampled_from(VerdictKind),
    space=texts,
    duplicate_of=st.none() | texts,
    duplicate_of_url=st.none() | texts,
    distance=st.builds(Distance, bits, bits),
    score=st.none() | st.floats(0, 1),
    reason=st.none() | texts,
)
sources = st.builds(Source, texts, st.integers(0, 100), st.integers(0, 2**63 - 1))


@given(verdicts, sources)
def test_a_message_has_the_fields_of_a_line_of_filter(verdict: Verdict, source: Source) -> None:
    """They are in the same order, followed by three more; a reader ignores a field added later."""
    fields = json.loads(verdict_value(verdict, source))
    line = json.loads(verdict_line(verdict))
    assert list(fields.items())[: len(line)] == list(line.items())
    assert list(fields)[len(line) :] == ["topic", "partition", "offset"]
    assert read_verdict(json.dumps(fields | {"later": 1}).encode()) == (verdict, source)


def test_other_bytes_are_not_a_verdict() -> None:
    """They raise ValueError."""
    with pytest.raises(ValueError, match="verdict"):
        read_verdict(b'{"id": "a", "url": "b"}')
