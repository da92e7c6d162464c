"""Settings for the whole suite."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.workermanage import WorkerController

from dedup_service.runtime.freed_memory import leave_out_of_collections
from tests.s3_server import running_s3

# Compiled code loads on first use, so a deadline would measure the machine instead of the code.
settings.register_profile("twinsieve", deadline=None, max_examples=50)
settings.load_profile("twinsieve")

PEAKS_MB: dict[str, int] = {}
BROKER_FIXTURES = frozenset({"broker", "topics", "own_cluster"})


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "broker: needs a Kafka broker; set on every test that uses its fixtures")
    config.addinivalue_line("markers", "browser: needs Chromium; set on every test that uses its fixture")


@pytest.hookimpl(tryfirst=True)  # before `-m "not broker"` is evaluated
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if BROKER_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.broker)
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
        if "helm" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)


def pytest_collection_finish() -> None:
    """Collect the garbage of the tests alone, so that it is collected often: it holds the tables of deciders."""
    leave_out_of_collections()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Have a worker of pytest-xdist tell its peak memory as it ends."""
    output = getattr(session.config, "workeroutput", None)
    status = Path("/proc/self/status")
    if output is not None and status.exists():
        (peak,) = (line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        output["peak_mb"] = int(peak) // 1024


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_testnodedown(node: WorkerController) -> None:
    PEAKS_MB[node.gateway.id] = getattr(node, "workeroutput", {}).get("peak_mb", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if PEAKS_MB:
        peaks = ", ".join(f"{name} {peak} MB" for name, peak in sorted(PEAKS_MB.items()))
        terminalreporter.write_line(f"peak memory of the workers: {peaks}")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Start an S3 server on this machine, and let clients use it; return its address."""
    from s3fs import S3FileSystem

    S3FileSystem.clear_instance_cache()  # those of a test before speak to its server
    with running_s3(tmp_path / "s3.log") as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield address
