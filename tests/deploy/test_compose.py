"""The compose file: one service process, or the index in shards."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dedup_service.runtime.kafka.service import ServiceSettings
from tests.deploy.commands import options_of, parsed

COMPOSE = yaml.safe_load((Path(__file__).parents[2] / "deploy" / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROFILE = "shards"
SHARDS = sorted(name for name in SERVICES if name.startswith("shard-"))
SERVING = sorted(name for name, service in SERVICES.items() if service.get("command", [""])[0] == "serve")


def options(name: str) -> dict[str, str]:
    """Return the options in the command of a service."""
    return options_of(SERVICES[name]["command"])


def started_with(name: str) -> set[str]:
    """Return the service and all that it depends on."""
    return {name}.union(*map(started_with, SERVICES[name].get("depends_on", ())))


def test_without_a_profile_one_kind_of_process_serves() -> None:
    """`docker compose up` starts the broker, the topics and the whole service, as the documents say."""
    assert {name for name, service in SERVICES.items() if not service.get("profiles")} == {"kafka", "topics", "service"}


def test_the_resolver_brings_everything_that_shards_need() -> None:
    """`docker compose up resolver` starts each service of the profile and the broker, but not the whole service."""
    of_profile = {name for name, service in SERVICES.items() if service.get("profiles") == [PROFILE]}
    assert started_with("resolver") == of_profile | {"kafka"}


def test_each_shard_has_its_own_part() -> None:
    """The resolver waits for as many shards as there are, and their number divides the slots."""
    count = len(SHARDS)
    assert [options(name)["--shard"] for name in SHARDS] == [f"{shard}/{count}" for shard in range(1, count + 1)]
    assert options("resolver")["--shards"] == str(count)
    assert int(options("slots")["--slots"]) % count == 0


@pytest.mark.parametrize("name", SERVING)
def test_every_process_can_be_scaled_and_is_confined(name: str) -> None:
    """It has no fixed port and no shared volume, no capability, and time to drain."""
    service = SERVICES[name]
    assert service["ports"] == ["127.0.0.1::8080"]
    assert not {"container_name", "volumes", "hostname"} & service.keys()
    assert service["cap_drop"] == ["ALL"]
    drain_s = ServiceSettings.__dataclass_fields__["drain_s"].default
    assert int(service["stop_grace_period"].removesuffix("s")) >= drain_s + 5


@pytest.mark.parametrize("name", SERVING)
def test_commands_are_those_of_serve(name: str) -> None:
    """The command line accepts each command."""
    chosen = parsed(SERVICES[name]["command"])
    assert chosen["state"] == "/state"
