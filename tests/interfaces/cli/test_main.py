"""The command itself: help without heavy imports, errors on one line, documented exit codes."""

import errno
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.interfaces.cli.main import COMMANDS, LazyGroup, run
from dedup_service.interfaces.cli.support.exit_codes import ExitCode

HEAVY = ("numpy", "rich", "scrapy", "trafilatura", "lxml", "msgspec")


def test_help_imports_nothing_heavy() -> None:
    """`twinsieve --help` is answered from its table, without a numeric library or a framework."""
    code = (
        "import sys; from dedup_service.interfaces.cli.main import run; assert run(['--help']) == 0;"
        f"print('imported:', *(name for name in {HEAVY!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "imported:"


def test_help_names_every_command_and_code(capsys: pytest.CaptureFixture[str]) -> None:
    """The help lists the commands of the table and the exit codes."""
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert all(f"\n    {code:<3}  " in shown for code in ExitCode)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in {"crawl", "demo"}])
def test_each_command_of_the_table_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every entry of the table leads to a command."""
    assert run([name, "--help"]) == 0
    assert f"twinsieve {name}" in capsys.readouterr().out


def test_version_is_the_distribution_s(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` names the release."""
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("twinsieve, version ")


def test_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """A command that does not exist gives code 2."""
    assert run(["sieve"]) == 2
    assert "No such command" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (ConfigurationError("k is 9, at most 7"), 2, "twinsieve: k is 9, at most 7"),
        (StateError("state is of space a, not b"), 1, "twinsieve: state is of space a, not b"),
        (
            OSError(errno.ENOSPC, "No space left on device", "out.jsonl"),
            1,
            "twinsieve: out.jsonl: No space left on device",
        ),
        (KeyboardInterrupt(), 130, ""),
        (ModuleNotFoundError("no scrapy", name="scrapy.http"), 2, "pip install 'twinsieve[scrapy]'"),
        (ModuleNotFoundError("no opencc", name="opencc"), 2, "pip install 'twinsieve[scrapy]'"),
        (ModuleNotFoundError("no kafka", name="kafka"), 2, "from a checkout: pip install '.[kafka]'"),
    ],
)
def test_errors_end_in_one_line_and_a_code(
    error: BaseException, code: int, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Expected failures are reported without a traceback."""

    @click.command("fail")
    def fail() -> None:
        raise error

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: fail)
    assert run(["fail"]) == code
    stderr = capsys.readouterr().err
    assert shown in stderr
    assert len(stderr.splitlines()) <= 1


def test_a_missing_module_of_ours_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing module of the project is a defect; no advice to install an extra hides it."""

    @click.command("fail")
    def fail() -> None:
        raise ModuleNotFoundError("gone", name="dedup_service.gone")

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: fail)
    with pytest.raises(ModuleNotFoundError, match="gone"):
        run(["fail"])


def test_module_runs_as_the_command() -> None:
    """`python -m dedup_service.interfaces.cli` is the command."""
    command = [sys.executable, "-m", "dedup_service.interfaces.cli", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "closed", "says"),
    [(["filter", "-"], 0, "Bad file descriptor"), (["filter", "{pages}"], 1, "standard output: Bad file descriptor")],
)
def test_a_closed_standard_stream_is_one_line(arguments: list[str], closed: int, says: str, tmp_path: Path) -> None:
    """No traceback, and no other file in its place."""
    (tmp_path / "pages").write_text('{"url": "https://a.example/", "text": "a text"}\n')
    arguments = [argument.format(pages=tmp_path / "pages") for argument in arguments]
    command = shlex.join([sys.executable, "-m", "dedup_service.interfaces.cli", *arguments])
    ended = subprocess.run(["sh", "-c", f"{command} {closed}>&-"], capture_output=True, text=True, check=False)
    assert ended.returncode == ExitCode.FAILED
    assert ended.stderr.startswith("twinsieve: ")
    assert says in ended.stderr
    assert ended.stderr.count("\n") == 1
