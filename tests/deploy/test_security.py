"""SECURITY.md: what it names exists, and its rights are those that the roles need."""

import re
from pathlib import Path

import pytest

from dedup_service.runtime.kafka.service import ServiceSettings
from dedup_service.runtime.kafka.topics import Topics

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text("utf-8")
COMMANDS = TEXT.replace("\\\n", " ")


def test_its_links_lead_somewhere() -> None:
    """Documents of the checkout, and their headings."""
    links = re.findall(r"\]\((docs/[\w-]+\.md)(?:#([\w-]+))?\)", TEXT)
    assert len(links) >= 3
    for path, anchor in links:
        headings = re.findall(r"^#+ (.+)$", (ROOT / path).read_text("utf-8"), re.MULTILINE)
        assert not anchor or anchor in {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}


@pytest.mark.parametrize(
    "topic", ["pages", "fingerprints", "unique", "duplicate", "verdicts", "dlq", "stats", "offsets"]
)
def test_the_service_has_rights_on_every_topic(topic: str) -> None:
    """Under the names that a service uses without a prefix."""
    name = re.escape(getattr(Topics(""), topic))
    loop = re.search(r"for topic in (.+); do", COMMANDS)
    assert loop is not None
    assert re.search(rf"User:twinsieve [^$]*--topic {name}\n", COMMANDS) or re.search(rf"(^| ){name}( |$)", loop[1])


def test_the_groups_are_those_of_the_service() -> None:
    """The group of each step, and the beginning of all transactional ids."""
    group = ServiceSettings.__dataclass_fields__["group"].default
    for line in (f"--group {group}\n", f"--group {group}.decide\n", f"--transactional-id {group}. "):
        assert line in COMMANDS


def test_only_the_service_and_operators_may_write_the_log() -> None:
    """Whoever may write there can do everything."""
    writers = re.findall(r"User:(\w+)[^\n]*--operation Write[^\n]*--topic fingerprints", COMMANDS)
    assert set(writers) == {"twinsieve", "operator"}
