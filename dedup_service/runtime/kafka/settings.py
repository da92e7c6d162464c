"""How to reach the brokers: an address and the client properties an operator already has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Connection", "read_properties"]


@dataclass(frozen=True, slots=True)
class Connection:
    """Address (`host:port,…`) and options (`security_protocol` or `security.protocol` …) of the brokers."""

    bootstrap: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def configs(self, **more: Any) -> dict[str, Any]:
        """The keyword arguments of any kafka-python client; `more` wins."""
        return {
            "bootstrap_servers": self.bootstrap.split(","),
            "reconnect_backoff_max_ms": 500,
            "bootstrap_timeout_ms": 10_000,
            "metrics_enabled": False,
            **{name.replace(".", "_"): value for name, value in self.options.items()},
            **more,
        }


def read_properties(path: Path) -> dict[str, str]:
    """The `name=value` lines of a properties file."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return dict(line.split("=", 1) for line in lines if line and line[0] not in "#!")
