"""`twinsieve serve` without a broker: its options and their checks."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.log_records import Policy
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.shards.shard import ShardNumber
from dedup_service.core.verdict import Action
from dedup_service.interfaces.cli.commands.serve import STEPS, serve_command, settings_of
from dedup_service.interfaces.cli.support.step_options import USED_BY
from dedup_service.runtime.kafka.service import ServiceSettings
from dedup_service.runtime.kafka.state.mounted_bases import require_bases
from dedup_service.runtime.kafka.topics import OutputMode
from tests.hangs import HANG_S
from tests.impatient_serve import VARIABLE
from tests.interfaces.cli.running import Cli, Ran

ROOT = Path(__file__).parents[3]


def serve(*arguments: object, **fields: object) -> Ran:
    """Run the command in a separate process, because it configures logging and signals. fields: of its settings."""
    command = [sys.executable, "-m", "tests.impatient_serve", "serve", *map(str, arguments)]
    environment = os.environ | {VARIABLE: json.dumps(fields)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def settings(*arguments: str) -> ServiceSettings:
    """Return the settings that a command line names."""
    with serve_command.make_context("serve", [*arguments]) as context:
        return settings_of(context.params)


def test_a_limit_on_memory_that_the_program_exceeds_is_wrong_usage(tmp_path: Path) -> None:
    """It is found before any broker is asked."""
    ran = serve("--bootstrap", "127.0.0.1:1", "--state", tmp_path / "state", "--max-memory", "1M", start_s=0)
    assert ran.code == 2
    assert "before its first page, and may take 1.00 MiB: give more (--max-memory" in ran.err


def test_defaults_are_those_of_the_service() -> None:
    """The command line repeats no default."""
    parsed = settings("--bootstrap", "a:1", "--state", "s")
    assert parsed == ServiceSettings(connection=parsed.connection, state=Path("s"))


def test_every_option_reaches_the_settings(tmp_path: Path) -> None:
    """Including those that it shares with `filter`."""
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL")
    parsed = settings(
        *("--bootstrap", "a:1,b:2", "--state", "s", "--prefix", "news.", "--group", "g", "--instance", "one"),
        *("--steps", "decide", "--profile", "balanced:2", "--action", "drop", "--space", "tf"),
        *("--shards", "4", "--verify"),
        *("--drain-s", "7", "--properties", str(file), "--outputs", "verdicts"),
    )
    assert parsed.connection.servers == ["a:1", "b:2"]
    assert parsed.connection.configs()["security_protocol"] == "SSL"
    assert (parsed.prefix, parsed.group, parsed.instance, parsed.steps) == ("news.", "g", "one", {"decide"})
    assert (parsed.rule, parsed.action, parsed.space.scheme) == (rule_for(k=2), Action.DROP, "tf")
    assert (parsed.resolved_shards, parsed.verify, parsed.shard) == (4, True, None)
    assert (parsed.drain_s, parsed.outputs) == (7, OutputMode.VERDICTS)
    preparing = ("--steps", "fingerprint", "--processes", "3", "--max-rejected-share", "0.5")
    parsed = settings("--bootstrap", "a:1", "--state", "s", *preparing)
    assert (parsed.steps, parsed.processes, parsed.rejection_limit.share) == ({"fingerprint"}, 3, 0.5)


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


@pytest.mark.parametrize("steps", [["both"], ["shard", "--shard", "1/2"], ["canonical"]])
def test_bases_of_another_log_say_what_gives_them(steps: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The option, or the variable, which nobody sees on the command line."""
    log = Policy(rule_for(), Action.FLAG, "space")
    where = ("--bootstrap", "a:1", "--state", "s", "--steps", *steps)
    with pytest.raises(ConfigurationError, match=r"begun without bases, .*: leave corpus, old out of --base, or begin"):
        require_bases(log, settings(*where, "--base", "corpus=/a", "--base", "old=/b").bases)
    monkeypatch.setenv("TWINSIEVE_LOG_BASES", "corpus=/a")
    with pytest.raises(ConfigurationError, match="leave corpus out of the environment variable TWINSIEVE_LOG_BASES"):
        require_bases(log, settings(*where).bases)
    with pytest.raises(ConfigurationError, match="leave old out of --base"):
        require_bases(log, settings(*where, "--base", "old=/b").bases)
    for wrong, message in (("corpus", "is no base"), ("corpus=a corpus=b", "gives corpus twice")):
        monkeypatch.setenv("TWINSIEVE_LOG_BASES", wrong)
        with pytest.raises(click.UsageError, match=f"variable TWINSIEVE_LOG_BASES.* {message}"):
            settings(*where)


def test_a_shard_is_named_by_its_number_and_how_many_there_are() -> None:
    """The step of a shard has no other options of the index."""
    parsed = settings("--bootstrap", "a:1", "--state", "s", "--steps", "shard", "--shard", "3/8", "--answer-all")
    assert (parsed.steps, parsed.shard, parsed.answer_all) == ({"shard"}, ShardNumber(3, 8), True)


WHERE = ["--bootstrap", "a:1", "--state", "s"]
SHARD = [*WHERE, "--steps", "shard"]
DECIDE = [*WHERE, "--steps", "decide"]

VALUES = {
    "--space": "tf",
    "--outputs": "verdicts",
    "--action": "drop", "--keep": "90d", "--profile": "precise",
    "--processes": "1", "--max-rejected-share": "1", "--max-memory": "1G",
    "--shards": "4", "--verify": None, "--shard": "1/4", "--answer-all": None,
}  # fmt: skip
"""Options that not every step uses, with values: some are the defaults, which are refused as well if they are given."""


def test_every_option_says_which_steps_use_it() -> None:
    """The table has each option of the command once, and no others; those here are the ones that a step leaves out."""
    assert {option.name for option in serve_command.params} == set(USED_BY)
    some = {option.opts[0] for option in serve_command.params if len(USED_BY[option.name or ""]) < len(STEPS)}
    assert some == set(VALUES)
    assert all(set(steps) <= set(STEPS) for steps in USED_BY.values())


@pytest.mark.parametrize("steps", STEPS)
def test_options_that_the_steps_do_not_use_are_refused(steps: str, cli: Cli) -> None:
    """All of them in one line, each with the steps that use it."""
    names = {option.opts[0]: option.name or "" for option in serve_command.params}
    unused = [option for option in VALUES if steps not in USED_BY[names[option]]]
    given = [word for option in unused for word in (option, VALUES[option]) if word is not None]
    ran = cli("serve", *WHERE, "--steps", steps, *given)
    assert ran.code == 2
    [line] = [line for line in ran.err.splitlines() if f"leave out what --steps {steps} does not use: " in line]
    for option in unused:
        *_, last = USED_BY[names[option]]
        assert re.search(rf"{option} is for --steps [a-z, ]*{last}(;|$)", line)
    assert line.count(" is for ") == len(unused)


def test_variables_for_all_processes_are_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment may set them for processes whose steps do not use them."""
    monkeypatch.setenv("TWINSIEVE_LOG_BASES", "corpus=/srv/corpus")
    monkeypatch.setenv("TWINSIEVE_BOOTSTRAP", "a:1")
    for option in serve_command.params:
        monkeypatch.setattr(option, "envvar", option.envvar or f"TWINSIEVE_TEST_{(option.name or '').upper()}")
    monkeypatch.setenv("TWINSIEVE_TEST_KEEP", "2")
    monkeypatch.setenv("TWINSIEVE_TEST_PROCESSES", "2")
    assert settings("--state", "s", "--steps", "shard", "--shard", "1/2").shard == ShardNumber(1, 2)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--state", "s"], "no broker is named"),
        (SHARD, "needs --shard I/S"),
        ([*SHARD, "--shard", "5/4"], "counted from 1"),
        ([*SHARD, "--shard", "4"], "as in 1/4"),
        (
            [*DECIDE, "--shards", "3"],
            "'3' is not one of '1', '2', '4'",
        ),
        ([*DECIDE, "--verify"], "--verify compares the answers of shards"),
        ([*DECIDE, "--shards", "4", "--max-memory", "1GB"], "--max-memory is not for shards"),
        (["--bootstrap", "a:1"], "--state"),
        (["--bootstrap", "a:1", "--state", "s", "--http", "nowhere"], "'nowhere' is not an address to listen on"),
        (["--bootstrap", "a:1", "--state", "s", "--properties", "nowhere.properties"], "nowhere.properties"),
    ],
)
def test_wrong_usage(arguments: list[str], shown: str, cli: Cli) -> None:
    """It is refused before anything is read or created."""
    ran = cli("serve", *arguments)
    assert ran.code == 2
    assert shown in ran.err


@pytest.mark.slow
def test_an_unreachable_broker(tmp_path: Path) -> None:
    """One line names the address, and exit code 4 tells a supervisor to try again."""
    file = tmp_path / "client.properties"
    file.write_text("bootstrap_timeout_ms=500")
    where = ("--bootstrap", "127.0.0.1:1", "--properties", file, "--state", tmp_path / "s")
    ran = serve(*where, "--log-level", "error", start_s=2)
    assert (ran.code, ran.out) == (4, "")
    assert "127.0.0.1:1" in ran.err.splitlines()[-1]
    assert "Traceback" not in ran.err


def test_an_invalid_broker_address_is_refused() -> None:
    """The settings are checked when they are created."""
    with pytest.raises(ConfigurationError, match="not an address of brokers"):
        settings("--bootstrap", "nowhere:port", "--state", "s")
