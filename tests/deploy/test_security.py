"""SECURITY.md: what it names exists, and its rights are those that the roles need."""

import re
from pathlib import Path

import pytest

from dedup_service.runtime.kafka.service import ServiceSettings
from dedup_service.runtime.kafka.topics import Topics
from deploy.kafka.access_lists import Grant, needed
from tests.documented_rights import granted_to, listed_for

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text("utf-8")


def test_its_links_lead_somewhere() -> None:
    """Documents of the checkout, and their headings."""
    links = re.findall(r"\]\((docs/[\w-]+\.md)(?:#([\w-]+))?\)", TEXT)
    assert len(links) >= 3
    for path, anchor in links:
        headings = re.findall(r"^#+ (.+)$", (ROOT / path).read_text("utf-8"), re.MULTILINE)
        assert not anchor or anchor in {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}


GROUP = ServiceSettings.__dataclass_fields__["group"].default


def test_the_service_has_the_rights_that_its_tests_run_with() -> None:
    """On every topic, for the group of each step, and for all transactional ids that a process may use."""
    assert granted_to("twinsieve") == set(needed(Topics(), GROUP))


@pytest.mark.parametrize(
    ("role", "users"),
    [
        ("twinsieve", ("serve",)),
        ("canonical", ("the step canonical",)),
        ("operator", ("operators",)),
        ("replayer", ("replay --to-prefix",)),
        ("backfiller", ("backfill",)),
        ("admin", ("topics create", "topics repair-transactions")),
    ],
)
def test_the_table_has_the_same_rights(role: str, users: tuple[str, ...]) -> None:
    """The operation manual says the same in a table as SECURITY.md in commands."""
    assert listed_for(*users) == granted_to(role)


def test_only_the_service_and_operators_may_write_the_log() -> None:
    """Whoever may write there can do everything."""
    roles = set(re.findall(r"User:(\w+)", TEXT))
    log = Grant("TOPIC", Topics().fingerprints, "WRITE")
    assert {role for role in roles if log in granted_to(role)} == {"twinsieve", "operator", "backfiller"}
