"""What `serve` says before it has a broker to work with."""

import subprocess
import sys
from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.interfaces.cli.commands.serve import serve_command, settings_of
from dedup_service.runtime.kafka.service import ServiceSettings
from tests.interfaces.cli.running import Cli, Ran

ROOT = Path(__file__).parents[3]


def serve(*arguments: object) -> Ran:
    """Run the command in a process of its own: it takes over logging and signals."""
    command = [sys.executable, "-m", "dedup_service.interfaces.cli", "serve", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def settings(*arguments: str) -> ServiceSettings:
    """The settings that a command line names."""
    context = serve_command.make_context("serve", [*arguments])
    return settings_of(context.params)


def test_defaults_are_the_service_s_own() -> None:
    """The command states none of its own."""
    given = settings("--bootstrap", "a:1", "--state", "s")
    assert given == ServiceSettings(connection=given.connection, state=Path("s"))


def test_every_option_arrives() -> None:
    """Also those that it shares with `filter`."""
    given = settings(
        *("--bootstrap", "a:1,b:2", "--state", "s", "--prefix", "news.", "--group", "g", "--instance", "one"),
        *("--steps", "decide", "--k", "2", "--action", "drop", "--scheme", "tf", "--processes", "3", "--shards", "4"),
        *("--page-timeout-s", "5", "--max-rejected-share", "0.5", "--drain-s", "7", "--transaction-timeout-s", "8"),
        *("--session-timeout-s", "9", "--snapshot-every", "10", "--client-option", "security.protocol=SSL"),
    )
    assert given.connection.servers == ["a:1", "b:2"]
    assert given.connection.configs()["security_protocol"] == "SSL"
    assert (given.prefix, given.group, given.instance, given.steps) == ("news.", "g", "one", {"decide"})
    assert (given.rule, given.action, given.space.scheme) == (rule_for(k=2), Action.DROP, "tf")
    assert (given.processes, given.shards, given.page_timeout_s, given.rejection_limit.share) == (3, 4, 5, 0.5)
    assert (given.drain_s, given.transaction_timeout_s, given.session_timeout_s) == (7, 8, 9)
    assert given.snapshot_every == 10


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--state", "s"], "no broker is named"),
        (["--bootstrap", "a:1"], "--state"),
        (["--bootstrap", "a:1", "--state", "s", "--http", "nowhere"], "'nowhere' is no address to listen on"),
        (["--bootstrap", "a:1", "--state", "s", "--client-option", "acks"], "NAME=VALUE"),
        (["--bootstrap", "a:1", "--state", "s", "--client-option", "akcs=1"], "unknown client option akcs"),
        (["--bootstrap", "a:1", "--state", "s", "--client-config", "nowhere.properties"], "nowhere.properties"),
    ],
)
def test_wrong_usage_is_said_in_one_line(
    arguments: list[str], shown: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is read or made."""
    monkeypatch.delenv("TWINSIEVE_BOOTSTRAP", raising=False)
    ran = cli("serve", *arguments)
    assert ran.code == 2
    assert shown in ran.err


@pytest.mark.slow
def test_a_broker_that_is_not_there(tmp_path: Path) -> None:
    """One line that says what to look at, and a code that tells a supervisor to try again."""
    arguments = ("--bootstrap", "127.0.0.1:1", "--client-option", "bootstrap_timeout_ms=500", "--log-level", "error")
    ran = serve(*arguments, "--state", tmp_path / "s")
    assert (ran.code, ran.out) == (4, "")
    assert "127.0.0.1:1" in ran.err.splitlines()[-1]
    assert "Traceback" not in ran.err


def test_an_address_without_brackets_is_refused() -> None:
    """The settings are checked where they are made."""
    with pytest.raises(ConfigurationError, match="not an address of brokers"):
        settings("--bootstrap", "nowhere:port", "--state", "s")
