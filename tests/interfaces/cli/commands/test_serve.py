"""`twinsieve serve` without a broker: its options and their checks."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.shards.shard import ShardNumber
from dedup_service.core.verdict import Action
from dedup_service.interfaces.cli.commands.serve import serve_command, settings_of
from dedup_service.runtime.kafka.service import ServiceSettings
from dedup_service.runtime.kafka.topics import OutputMode
from tests.interfaces.cli.running import Cli, Ran

ROOT = Path(__file__).parents[3]


def serve(*arguments: object) -> Ran:
    """Run the command in a separate process, because it configures logging and signals."""
    command = [sys.executable, "-m", "dedup_service.interfaces.cli", "serve", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def settings(*arguments: str) -> ServiceSettings:
    """Return the settings that a command line names."""
    context = serve_command.make_context("serve", [*arguments])
    return settings_of(context.params)


def test_defaults_are_those_of_the_service() -> None:
    """The command line repeats no default."""
    parsed = settings("--bootstrap", "a:1", "--state", "s")
    assert parsed == ServiceSettings(connection=parsed.connection, state=Path("s"))


def test_every_option_reaches_the_settings() -> None:
    """Including those that it shares with `filter`."""
    parsed = settings(
        *("--bootstrap", "a:1,b:2", "--state", "s", "--prefix", "news.", "--group", "g", "--instance", "one"),
        *("--steps", "decide", "--k", "2", "--action", "drop", "--scheme", "tf", "--processes", "3"),
        *("--shards", "4", "--verify"),
        *("--page-timeout-s", "5", "--max-rejected-share", "0.5", "--drain-s", "7", "--transaction-timeout-s", "8"),
        *("--session-timeout-s", "9", "--snapshot-every", "10", "--client-option", "security.protocol=SSL"),
        *("--outputs", "verdicts"),
    )
    assert parsed.connection.servers == ["a:1", "b:2"]
    assert parsed.connection.configs()["security_protocol"] == "SSL"
    assert (parsed.prefix, parsed.group, parsed.instance, parsed.steps) == ("news.", "g", "one", {"decide"})
    assert (parsed.rule, parsed.action, parsed.space.scheme) == (rule_for(k=2), Action.DROP, "tf")
    assert (parsed.processes, parsed.page_timeout_s, parsed.rejection_limit.share) == (3, 5, 0.5)
    assert (parsed.resolved_shards, parsed.verify, parsed.shard) == (4, True, None)
    assert (parsed.drain_s, parsed.transaction_timeout_s, parsed.session_timeout_s) == (7, 8, 9)
    assert (parsed.snapshot_every, parsed.outputs) == (10, OutputMode.VERDICTS)


def test_bases_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the command line or in the environment; every other form is refused."""
    where = ("--bootstrap", "a:1", "--state", "s")
    given = settings(*where, "--base", "corpus=/srv/a=b", "--base", "old=s3://bucket/corpus")
    assert given.bases == {"corpus": "/srv/a=b", "old": "s3://bucket/corpus"}
    for wrong in ("corpus", "=x", "corpus=", "a b=x", "a\n=x", "x" * 101 + "=y"):
        with pytest.raises(click.UsageError, match="write NAME=FOLDER"):
            settings(*where, "--base", wrong)
    with pytest.raises(click.UsageError, match="gives corpus twice"):
        settings(*where, "--base", "corpus=a", "--base", "corpus=b")
    monkeypatch.setenv("TWINSIEVE_LOG_BASES", "corpus=/srv/corpus old=/srv/old")
    assert settings(*where).bases == {"corpus": "/srv/corpus", "old": "/srv/old"}


def test_a_shard_is_named_by_its_number_and_how_many_there_are() -> None:
    """The step of a shard has no other options of the index."""
    parsed = settings("--bootstrap", "a:1", "--state", "s", "--steps", "shard", "--shard", "3/8", "--answer-all")
    assert (parsed.steps, parsed.shard, parsed.answer_all) == ({"shard"}, ShardNumber(3, 8), True)


SHARD = ["--bootstrap", "a:1", "--state", "s", "--steps", "shard"]
CANONICAL = ["--bootstrap", "a:1", "--state", "s", "--steps", "canonical"]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--state", "s"], "no broker is named"),
        (SHARD, "needs --shard I/S"),
        ([*SHARD, "--shard", "5/4"], "counted from 1"),
        ([*SHARD, "--shard", "4"], "as in 1/4"),
        ([*SHARD, "--shard", "1/4", "--shards", "4"], "--shards is for --steps decide"),
        ([*SHARD, "--shard", "1/4", "--action", "drop"], "--steps shard takes the policy of the log"),
        ([*SHARD, "--shard", "1/4", "--max-memory", "1GB"], "--max-memory is not for shards"),
        (
            ["--bootstrap", "a:1", "--state", "s", "--steps", "decide", "--shards", "3"],
            "'3' is not one of '1', '2', '4'",
        ),
        (["--bootstrap", "a:1", "--state", "s", "--verify"], "--verify compares the answers of shards"),
        (["--bootstrap", "a:1", "--state", "s", "--answer-all"], "--answer-all is for --steps shard"),
        ([*CANONICAL, "--shards", "4"], "--shards is for --steps decide"),
        ([*CANONICAL, "--keep", "90d"], "takes the policy of the log"),
        ([*CANONICAL, "--k", "2"], "takes the policy of the log"),
        ([*CANONICAL, "--max-memory", "1G"], "--max-memory is for the deciding step"),
        (["--bootstrap", "a:1"], "--state"),
        (["--bootstrap", "a:1", "--state", "s", "--trusted-proxy", "10.0.0.7"], "--trusted-proxy needs"),
        (["--bootstrap", "a:1", "--state", "s", "--http", "0", "--trusted-proxy", "*"], "not the address of a proxy"),
        (["--bootstrap", "a:1", "--state", "s", "--http", "0", "--trusted-proxy", "10.0.0.7"], "needs a token"),
        (["--bootstrap", "a:1", "--state", "s", "--http", "nowhere"], "'nowhere' is not an address to listen on"),
        (["--bootstrap", "a:1", "--state", "s", "--client-option", "acks"], "NAME=VALUE"),
        (["--bootstrap", "a:1", "--state", "s", "--client-option", "akcs=1"], "unknown client option akcs"),
        (["--bootstrap", "a:1", "--state", "s", "--client-config", "nowhere.properties"], "nowhere.properties"),
    ],
)
def test_wrong_usage(arguments: list[str], shown: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before anything is read or created."""
    monkeypatch.delenv("TWINSIEVE_BOOTSTRAP", raising=False)
    ran = cli("serve", *arguments)
    assert ran.code == 2
    assert shown in ran.err


@pytest.mark.slow
def test_an_unreachable_broker(tmp_path: Path) -> None:
    """One line names the address, and exit code 4 tells a supervisor to try again."""
    arguments = ("--bootstrap", "127.0.0.1:1", "--client-option", "bootstrap_timeout_ms=500", "--log-level", "error")
    ran = serve(*arguments, "--start-s", 2, "--state", tmp_path / "s")
    assert (ran.code, ran.out) == (4, "")
    assert "127.0.0.1:1" in ran.err.splitlines()[-1]
    assert "Traceback" not in ran.err


def test_an_invalid_broker_address_is_refused() -> None:
    """The settings are checked when they are created."""
    with pytest.raises(ConfigurationError, match="not an address of brokers"):
        settings("--bootstrap", "nowhere:port", "--state", "s")
