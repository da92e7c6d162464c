"""The systemd unit: systemd accepts it, and its numbers are those of the code."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.runtime.kafka.service import ServiceSettings
from tests.deploy.commands import parsed
from tests.hangs import HANG_S

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = DEPLOY / "systemd" / "twinsieve.service"
PROGRAM = "/opt/twinsieve/bin/twinsieve"
ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed (Debian: systemd)")


@pytest.fixture(scope="module")
def settings() -> dict[str, list[str]]:
    """Every setting of the unit, by its name, with its values in order."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text("utf-8").replace("\\\n", " ").splitlines():
        if line and line[0] not in "#;[":
            name, equals, value = line.partition("=")
            assert equals, line
            found.setdefault(name, []).append(value)
    return found


def codes(settings: dict[str, list[str]], name: str) -> set[ExitCode]:
    """Return the exit codes that a setting names."""
    return {ExitCode(int(code)) for value in settings[name] for code in value.split()}


def test_exit_143_is_a_success(settings: dict[str, list[str]]) -> None:
    """A stop by a signal is no failure; only wrong usage or configuration is not worth a restart."""
    assert codes(settings, "SuccessExitStatus") == {ExitCode.TERMINATED, ExitCode.INTERRUPTED}
    assert codes(settings, "RestartPreventExitStatus") == {ExitCode.USAGE}
    assert settings["Restart"] == ["on-failure"]


def test_a_stop_is_waited_for_longer_than_it_takes(settings: dict[str, list[str]]) -> None:
    """A supervisor kills the service only after the time that it may use to drain."""
    drain_s = ServiceSettings.__dataclass_fields__["drain_s"].default
    [stop_s] = settings["TimeoutStopSec"]
    assert int(stop_s) >= drain_s + 5
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]["service"]
    assert int(service["stop_grace_period"].removesuffix("s")) >= drain_s + 5


def test_waiting_for_a_broker_does_not_use_up_the_starts(settings: dict[str, list[str]]) -> None:
    """Exit code 4 comes after `start_s`; the unit is restarted as often as that takes."""
    start_s = ServiceSettings.__dataclass_fields__["start_s"].default
    [interval_s], [burst] = settings["StartLimitIntervalSec"], settings["StartLimitBurst"]
    assert int(interval_s) / start_s < int(burst)


def test_the_command_line_is_valid(settings: dict[str, list[str]]) -> None:
    """Its options are those of `serve`, and its state is in the unit's state folder."""
    [command] = settings["ExecStart"]
    program, name, *arguments = shlex.split(command)
    assert (program, name) == (PROGRAM, "serve")
    chosen = parsed([name, *arguments, "--bootstrap", "a:1"])
    assert chosen["state"] == f"%S/{settings['StateDirectory'][0]}"
    assert chosen["properties"] == "%d/client.properties"
    assert settings["LoadCredential"][0].startswith("client.properties:")


@needs_systemd
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """`systemd-analyze verify` has nothing to say about it; this machine lacks only the program that it starts."""
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text("utf-8").replace(PROGRAM, sys.executable), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "--man=no", "verify", unit], capture_output=True, text=True, timeout=HANG_S, check=False
    )
    ours = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, ours) == (0, [])


@needs_systemd
def test_the_service_is_confined(tmp_path: Path) -> None:
    """`systemd-analyze security` gives at most 2.0 of 10 points of exposure."""
    shutil.copy(UNIT, tmp_path)
    command = ["systemd-analyze", "security", "--offline=yes", "--threshold=20", str(tmp_path / UNIT.name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stdout[-500:]
