"""The constants: each has a source, and what was not measured says so."""

import re
from pathlib import Path

import pytest

from dedup_service.core.capacity.unit_costs import CostOrigin, UnitCosts

KEYS = UnitCosts().by_key()
PERFORMANCE = (Path(__file__).parents[3] / "docs" / "performance.md").read_text(encoding="utf-8")
ESTIMATED = {
    *("shard_rate", "resolver_rate", "candidates_page", "outcome_page"),
    *("disk_names", "reads_page", "verdict_bytes", "hop_s"),
}


def test_names_are_unique() -> None:
    """A table of the constants names each one once."""
    assert len({cost.name for cost in KEYS.values()}) == len(KEYS)


def test_what_was_not_measured_says_so() -> None:
    """The source of an estimated constant begins with this word; those of shards and resolver are among them."""
    assert {key for key, cost in KEYS.items() if cost.source.startswith("estimated: ")} == ESTIMATED
    assert {key for key, cost in KEYS.items() if cost.origin is CostOrigin.ESTIMATED} == ESTIMATED


@pytest.mark.parametrize("key", [key for key, cost in KEYS.items() if cost.source.startswith("performance.md, ")])
def test_a_source_is_a_section_that_exists(key: str) -> None:
    """A measured constant names a heading or a bold paragraph of docs/performance.md."""
    section = re.split(r": ", KEYS[key].source.removeprefix("performance.md, "))[0]
    words = section.split(", ")
    headings = re.findall(r"^#+ (.*)$|^\*\*(.*?)\.?\*\*", PERFORMANCE, re.MULTILINE)
    titles = {(first or second).lower().replace("`", "") for first, second in headings}
    named = ": ".join(words).lower().replace("`", "")
    assert named in titles, (section, titles)


def test_a_measurement_replaces_an_estimate() -> None:
    """It has value and source of its own, and the name and unit of the constant."""
    cost = UnitCosts().shard_rate.measured(25_000, "performance.md, Shards")
    assert (cost.value, cost.source, cost.origin) == (25_000, "performance.md, Shards", CostOrigin.MEASURED)
    assert (cost.name, cost.unit) == (UnitCosts().shard_rate.name, "pages/s")
