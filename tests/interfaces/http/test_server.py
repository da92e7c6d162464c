"""The server as seen by a probe or Prometheus, and the addresses that it accepts."""

import logging
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.http.access_guard import ENV_VARIABLE
from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.probes import Health, probes_app
from dedup_service.interfaces.http.server import Address, HttpServer
from dedup_service.interfaces.http.service import Addresses, ServedService
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.service import ServiceSettings
from tests.hangs import HANG_S
from tests.interfaces.http.fake_status import FakeStatus, both_steps


@pytest.fixture
def status() -> FakeStatus:
    """The status of the service behind the server."""
    return FakeStatus(both_steps())


@pytest.fixture
def server(status: FakeStatus) -> Iterator[HttpServer]:
    """A server on a free port."""
    health = Health(status)
    app = probes_app(health, Metrics(status, health).registry, "dashboard off")
    with HttpServer(app, Address("127.0.0.1", 0)) as running:
        yield running


def get(server: HttpServer, path: str) -> tuple[int, str]:
    """Return status and body of an answer."""
    try:
        with urllib.request.urlopen(f"http://{server.address}{path}", timeout=HANG_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_probes_answer_with_status_and_reason(status: FakeStatus, server: HttpServer) -> None:
    """They answer 200 or 503, with one line of text."""
    assert get(server, "/readyz") == (200, "ready\n")
    status.status = both_steps(ticked_at=-1e9, assigned=())
    assert get(server, "/readyz") == (503, "fingerprint and decide: no partitions of pages are assigned\n")
    assert get(server, "/livez") == (200, "live\n")


def test_what_is_missing_is_said_at_the_root(server: HttpServer) -> None:
    """To a person who looks for the dashboard, with what there is instead."""
    assert get(server, "/") == (200, "dashboard off; here are /startupz, /livez, /readyz, /metrics\n")


def test_a_service_without_a_token_says_that_it_has_no_dashboard(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In its log, and at the root; with a dashboard at an address of its own, both say so."""
    settings = ServiceSettings(connection=Connection("127.0.0.1:1"), state=tmp_path)
    free = "127.0.0.1", 0
    for dashboard, said in ((None, f"off: no token in {ENV_VARIABLE}"), (Address(*free), "http://")):
        caplog.clear()
        with caplog.at_level(logging.INFO), ExitStack() as stack:
            addresses = Addresses(http=Address(*free), dashboard=dashboard, token=None)
            ServedService(settings, [], addresses).serve(stack)
            (line,) = (record for record in caplog.records if record.message == "listening")
            with urllib.request.urlopen(line.facts["http"], timeout=HANG_S) as response:
                body = response.read().decode()
            assert line.facts["dashboard"].startswith(said)
            assert body.startswith(f"dashboard {said}" if dashboard is None else "dashboard elsewhere")


def test_metrics_are_in_the_text_format(server: HttpServer) -> None:
    """Prometheus can scrape them."""
    code, body = get(server, "/metrics")
    assert code == 200
    assert "# TYPE twinsieve_pages_total counter" in body
    assert "twinsieve_ready 1.0" in body
    assert "process_resident_memory_bytes" in body


def test_a_port_that_is_taken_is_refused(server: HttpServer) -> None:
    """The service does not start, and says which option to change."""
    with pytest.raises(ConfigurationError, match="--http"):
        HttpServer(lambda scope, receive, send: None, server.address)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize("text", ["", "http", "127.0.0.1:", ":80", "::1:80", "localhost:70000", "1.2.3.4"])
def test_an_invalid_address_is_refused(text: str) -> None:
    """The message says what to give instead."""
    with pytest.raises(ConfigurationError, match=r"(PORT|brackets)"):
        Address.parse(text)
