"""Finding and installing Chromium and Prometheus, with fake programs instead of the machine's."""

import os
from pathlib import Path

import pytest

from deploy.programs import CHROMIUM, PROGRAMS, PROMETHEUS, PROMTOOL, MissingProgramError, main, provide

APT_GET = """
for word in "$@"; do case "$word" in
  prometheus) /bin/cp {shelf}/any {path}/prometheus; /bin/cp {shelf}/any {path}/promtool;;
  update|install|-*) ;;
  *) exit 100;;
esac; done"""


@pytest.fixture
def path(tmp_path, monkeypatch) -> Path:
    """The only folder on PATH."""
    for program in PROGRAMS.values():
        monkeypatch.delenv(program.variable, raising=False)
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def executable(file: Path, text: str = "exit 0") -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def test_a_missing_program_gives_one_line_of_instructions(path, capsys):
    """The exit code is 1, and the line names package and variable."""
    assert main() == 1
    output = capsys.readouterr().err
    assert "apt-get install chromium" in output
    assert CHROMIUM.variable in output
    assert output.count("\n") == 1


def test_only_the_named_programs_are_wanted(path, capsys):
    """Chromium alone is enough for `make test`; an unknown name is an error."""
    executable(path / "chromium")
    assert main("chromium") == 0
    assert main("chromium", "promtool") == 1
    assert main("firefox") == 2
    assert "known are chromium, prometheus, promtool" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages without sudo")
def test_packages_are_installed_if_permitted(path, tmp_path):
    """One installation provides both programs of a package."""
    shelf = tmp_path / "shelf"
    executable(shelf / "any")
    executable(path / "apt-get", APT_GET.format(shelf=shelf, path=path))
    assert provide(PROMETHEUS, PROMTOOL) == [path / "prometheus", path / "promtool"]
    with pytest.raises(MissingProgramError):
        provide(CHROMIUM)


def test_an_installed_program_is_used(path):
    """It is found under any of its names, and nothing is installed."""
    executable(path / "chromium-browser")
    assert provide(CHROMIUM) == [path / "chromium-browser"]


def test_the_environment_variable_has_precedence(path, tmp_path, monkeypatch):
    """A path that does not exist is an error; no other program is used instead."""
    executable(path / "chromium")
    mine = executable(tmp_path / "mine" / "browser")
    monkeypatch.setenv(CHROMIUM.variable, str(mine))
    assert CHROMIUM.find() == mine
    mine.unlink()
    with pytest.raises(MissingProgramError, match=CHROMIUM.variable):
        CHROMIUM.find()
