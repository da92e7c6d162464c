"""The server as a browser, a probe or Prometheus meets it."""

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.probes import Health, app_of
from dedup_service.interfaces.http.server import Address, HttpServer
from tests.interfaces.http.facts import Told, both_steps


@pytest.fixture
def told() -> Told:
    """The service behind the server."""
    return Told(both_steps())


@pytest.fixture
def server(told: Told) -> Iterator[HttpServer]:
    """A server on a free port."""
    health = Health(told)
    with HttpServer(app_of(health, Metrics(told, health).registry), Address("127.0.0.1", 0)) as running:
        yield running


def get(server: HttpServer, path: str) -> tuple[int, str]:
    """Status and body."""
    try:
        with urllib.request.urlopen(f"http://{server.address}{path}", timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_probes_answer_with_status_and_reason(told: Told, server: HttpServer) -> None:
    """200 or 503, and one line for people."""
    assert get(server, "/readyz") == (200, "ready\n")
    told.status = both_steps(ticked_at=-1e9, assigned=())
    assert get(server, "/readyz") == (503, "fingerprint and decide: no partitions of pages are assigned\n")
    assert get(server, "/livez") == (200, "live\n")


def test_metrics_are_in_the_text_format(server: HttpServer) -> None:
    """As Prometheus scrapes them."""
    status, body = get(server, "/metrics")
    assert status == 200
    assert "# TYPE twinsieve_pages_total counter" in body
    assert "twinsieve_ready 1.0" in body
    assert "process_resident_memory_bytes" in body


def test_other_paths_are_not_there(server: HttpServer) -> None:
    """Nothing else is served."""
    assert get(server, "/")[0] == 404


def test_a_port_that_is_taken(server: HttpServer) -> None:
    """The service does not start, and says which option to change."""
    with pytest.raises(ConfigurationError, match="--http"):
        HttpServer(lambda scope, receive, send: None, server.address)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize("text", ["", "http", "127.0.0.1:", ":80", "::1:80", "localhost:70000", "1.2.3.4"])
def test_what_is_no_address(text: str) -> None:
    """Refused with what to give instead."""
    with pytest.raises(ConfigurationError, match=r"(PORT|brackets)"):
        Address.parse(text)
