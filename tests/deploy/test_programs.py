"""Getting Chromium and Prometheus, with the machine's own programs out of sight and others in their place."""

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
    """A folder that is all of PATH."""
    for program in PROGRAMS:
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


def test_where_nothing_can_be_had_one_line_says_what_to_install(path, capsys):
    """The exit code is 1, and the line names package and variable."""
    assert main() == 1
    said = capsys.readouterr().err
    assert "apt-get install chromium" in said
    assert CHROMIUM.variable in said
    assert said.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages without sudo")
def test_packages_are_installed_where_that_is_allowed(path, tmp_path):
    """Both programs of one package come with one installation."""
    shelf = tmp_path / "shelf"
    executable(shelf / "any")
    executable(path / "apt-get", APT_GET.format(shelf=shelf, path=path))
    assert provide(PROMETHEUS, PROMTOOL) == [path / "prometheus", path / "promtool"]
    with pytest.raises(MissingProgramError):
        provide(CHROMIUM)


def test_what_is_there_is_used(path):
    """Under any of its names, and nothing is installed for it."""
    executable(path / "chromium-browser")
    assert provide(CHROMIUM) == [path / "chromium-browser"]


def test_a_named_program_goes_before(path, tmp_path, monkeypatch):
    """A name that leads nowhere is an error, not a reason to take another."""
    executable(path / "chromium")
    mine = executable(tmp_path / "mine" / "browser")
    monkeypatch.setenv(CHROMIUM.variable, str(mine))
    assert CHROMIUM.find() == mine
    mine.unlink()
    with pytest.raises(MissingProgramError, match=CHROMIUM.variable):
        CHROMIUM.find()
