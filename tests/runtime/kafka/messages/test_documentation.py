"""The examples of docs/topics.md are what the code reads and writes."""

import json
import re
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from jsonschema import Draft202012Validator

from dedup_service.core.decision.replica import Replica
from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.core.groups.member import GroupMember
from dedup_service.core.log_records import (
    BackfillRecord,
    CorrectionRecord,
    ExpiredRecord,
    LayoutRecord,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    TimeRecord,
    UnwrittenRecord,
)
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.size_limits import (
    EVENT_MESSAGE_BYTES,
    MAX_BATCH_BYTES,
    MAX_HEADERS,
    MAX_HEADERS_BYTES,
    MAX_KEY_BYTES,
    MAX_NAME_CHARS,
    MAX_PAGE_SIZE,
    MAX_VALUE_BYTES,
    PAGE_MESSAGE_BYTES,
)
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.groups.canonical_table import CanonicalChange, TablePosition
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.messages import headers
from dedup_service.runtime.kafka.messages.canonical import canonical_message
from dedup_service.runtime.kafka.messages.log_record import decode, encode
from dedup_service.runtime.kafka.messages.page import PageMessage, dead_letter
from dedup_service.runtime.kafka.messages.page_batch import BatchColumns
from dedup_service.runtime.kafka.messages.verdict import read_verdict, stats_value, verdict_value
from dedup_service.runtime.kafka.state.step_offsets import DECIDE, ReplayMark, StepOffsets, replay_message
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.readers.columns import PageJson
from docs.json_schemas import FOLDER, SCHEMAS, schema
from tests.page_names import NamesInMemory


@dataclass(frozen=True)
class Stored:
    """A message as a reader returns it."""

    key: bytes
    value: bytes


EXAMPLE_PAGES = (
    b'{"url": "u:1", "text": "a", "id": 7, "keywords": ["b"], "more": {}}',
    b'{"url": "u:1", "html": null, "id": 1.5, "text_percent": 3}',
)
TEXT = (Path(__file__).parents[4] / "docs" / "topics.md").read_text(encoding="utf-8")


def examples(topic: str) -> list[bytes]:
    """Return the messages in the code block of `topic`."""
    block = re.search(rf'```json title="{re.escape(topic)}"\n(.*?)```', TEXT, re.DOTALL)
    assert block is not None
    return block[1].encode().splitlines()


def test_the_example_page_is_a_page() -> None:
    """It has the canonical URL that the text states, and the text names every known key."""
    (value,) = examples("pages")
    page = PageMessage("pages", 0, 0, value).page(lambda _html, _declared: Extraction())
    assert page.canonical_url == "https://news.example/2026/typhoon"
    missing = [name for name in PageJson.__struct_fields__ if f"`{name}`" not in TEXT]
    assert missing == []


def test_the_example_verdict_is_what_is_written() -> None:
    """All bytes are equal."""
    (value,) = examples("verdicts")
    assert verdict_value(*read_verdict(value)) == value


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_made_of_the_types(name: str) -> None:
    """`python -m docs.json_schemas` would write the same file, and it is a schema."""
    text = (FOLDER / f"{name}.json").read_text("utf-8")
    assert text == schema(name)
    Draft202012Validator.check_schema(json.loads(text))


@pytest.mark.parametrize("value", [*EXAMPLE_PAGES, *(b"{}", b'{"url": ""}', b'{"url": "u:1", "title": 1}', b"[]")])
def test_the_schema_of_pages_takes_what_is_a_page(value: bytes) -> None:
    """And nothing else."""
    try:
        PageMessage("pages", 0, 0, value).page(lambda _html, _declared: Extraction())
    except RecordError:
        is_page = False
    else:
        is_page = True
    assert Draft202012Validator(json.loads(schema("page"))).is_valid(json.loads(value)) == is_page


def test_the_schema_of_verdicts_takes_what_is_written() -> None:
    """With an original and without, in a base and not."""
    validator = Draft202012Validator(json.loads(schema("verdict")))
    verdict, source = read_verdict(examples("verdicts")[0])
    unique = Verdict(sequence=1, id="a", url="u:1", kind=VerdictKind.UNIQUE, space="s")
    for one in (verdict, replace(verdict, duplicate_of_base="corpus"), unique):
        validator.validate(json.loads(verdict_value(one, source)))
    assert not validator.is_valid({"id": "a"})


def test_the_example_stats_are_what_is_written() -> None:
    """They have every key, and no other."""
    (value,) = examples("dedup.stats")
    assert list(json.loads(value)) == list(json.loads(stats_value(Replica(NamesInMemory()), "crawl-1", {})))


def test_the_example_log_is_what_is_written() -> None:
    """It has one record of each kind that is JSON, byte for byte; the policy has a rule table."""
    values = examples("fingerprints")
    records = [record for value in values for record in decode(value)]
    assert [encode(record) for record in records] == values
    kinds = [
        *(RejectedRecord, ExpiredRecord, UnwrittenRecord),
        *(LayoutRecord, PolicyRecord, TimeRecord, RetractionRecord, CorrectionRecord, BackfillRecord),
    ]
    assert list(map(type, records)) == kinds
    policy = records[4]
    assert isinstance(policy, PolicyRecord)
    assert policy.policy.rule.verified == (MatchRow(name="nearly equal", jaccard=0.85, figures=0.5),)


def test_the_columns_of_a_batch_are_named() -> None:
    """The text has the name of each."""
    columns = TEXT[TEXT.index("### Pages in columns") :]
    assert [name for name in BatchColumns.__struct_fields__ if f"`{name}`" not in columns] == []


def test_the_example_offsets_are_what_is_read() -> None:
    """That of a step, and that of a replay."""
    (step,), (replay,) = examples("dedup.offsets"), examples("dedup.offsets of a replay")
    offsets = StepOffsets(Connection("nowhere:1"), Topics())
    offsets._take([Stored(b"decide/3", step), Stored(b"replay", replay)])
    assert offsets.of(DECIDE) == {("pages", 3): 1883}
    assert offsets.replay == ReplayMark("5f0e9a7712c84d33a9c1f1f6f3a6a3d2", finished=False)
    assert replay_message(Topics(), offsets.replay).value == replay


def test_the_example_of_canonical_pages_is_what_is_written() -> None:
    """All bytes are equal."""
    (value,) = examples("canonical")
    fields = json.loads(value)
    url, sequence = fields["canonical"]["url"], fields["canonical"]["sequence"]
    page = GroupMember(sequence=sequence, id=url, url=url, canonical_url=url, kind=VerdictKind.DUPLICATE)
    at_ms = round(datetime.fromisoformat(fields["at"]).timestamp() * 1000)
    change = CanonicalChange(fields["group"], page, at_ms)
    message = canonical_message("canonical", change, fields["policy"], TablePosition(4711, fields["group"]))
    assert message.value == value
    assert f"`{dict(message.headers)['twinsieve.log_position'].decode()}`" in TEXT


@pytest.mark.parametrize(
    "kind", ["LOG_TYPE", "BATCH_TYPE", "VERDICT_TYPE", "STATS_TYPE", "PAGE_TYPE", "OFFSET_TYPE", "CANONICAL_TYPE"]
)
def test_event_types_are_named(kind: str) -> None:
    """The text names each event type with its version."""
    assert f"`{getattr(headers, kind)}`" in TEXT


def test_the_limits_are_those_of_the_code() -> None:
    """The text has each limit on a record, and what each topic must take."""
    rows = [
        f"| value | {MAX_VALUE_BYTES >> 20} MiB |",
        f"| key | {MAX_KEY_BYTES:,} bytes:",
        f"| headers | {MAX_HEADERS}, names and values together {MAX_HEADERS_BYTES >> 10} KiB |",
        f"| `url`, `id` | {MAX_NAME_CHARS:,} characters each |",
        f"| `text` or `html` | {MAX_PAGE_SIZE >> 20} MiB |",
        f"| the batch that it is in | {MAX_BATCH_BYTES >> 20} MiB |",
        f"| `pages.unique`, `pages.duplicate`, `pages.dlq` | {PAGE_MESSAGE_BYTES >> 20} MiB |",
        f"| `fingerprints`, `verdicts`, `dedup.stats`, `canonical` | {EVENT_MESSAGE_BYTES >> 20} MiB |",
    ]
    assert [row for row in rows if row not in TEXT] == []


class Consumed(NamedTuple):
    """A record as a consumer returns it."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


def test_added_headers_are_named() -> None:
    """The text names every header that is added."""
    source = read_verdict(examples("verdicts")[0])[1]
    added = headers.passed_on([], source, 1, verdict="duplicate", original_url="u:1")
    record = Consumed(source.topic, 0, 0, key=bytes(1 << 20), value=bytes(16 << 20), headers=(("a", bytes(1 << 20)),))
    added += dead_letter(record, 1, "too long").headers
    assert [name for name, _ in added if f"`{name}`" not in TEXT] == []
