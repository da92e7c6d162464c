"""The start of docs/kafka.md does what it says."""

from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.kafka import Cluster
from tests.documented_sessions import run, section

pytestmark = pytest.mark.slow


def test_start_with_kafka(tmp_path: Path, own_cluster: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a broker without topics, three pages get their verdicts. The port is a free one here."""
    monkeypatch.setenv("TWINSIEVE_BOOTSTRAP", own_cluster().bootstrap)
    run(section("docs/kafka.md", "## Start"), tmp_path, instead={"--http 8080": "--http 0"})
