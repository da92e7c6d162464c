"""Making pywb's environment, with a fake Python instead of the package index."""

import sys
from pathlib import Path

import pytest

from deploy.pywb import environment
from deploy.pywb.environment import MissingPywbError, build, find

PYTHON = """#!/bin/sh
mkdir -p "$3/bin"
cat > "$3/bin/python" <<'EOF'
{pip}EOF
chmod +x "$3/bin/python"
"""
PIP = """#!/bin/sh
echo "$@" >> {folder}/runs
echo "no such version" >&2
exit {exit_code}
"""


def test_an_environment_that_was_not_made_is_named(tmp_path: Path) -> None:
    """The message is the command that makes it."""
    with pytest.raises(MissingPywbError, match=r"run python -m deploy\.pywb\.environment"):
        find(tmp_path)


@pytest.mark.parametrize("exit_code", [0, 1])
def test_the_environment_is_made_once_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exit_code: int
) -> None:
    """If pip fails, one line says why, nothing is found, and the next attempt begins again."""
    python = tmp_path / "python"
    python.write_text(PYTHON.format(pip=PIP.format(folder=tmp_path, exit_code=exit_code)))
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    for _ in range(2):
        if exit_code:
            with pytest.raises(MissingPywbError, match=r"pywb could not be installed: no such version$"):
                build(tmp_path / "venv")
            with pytest.raises(MissingPywbError):
                find(tmp_path / "venv")
        else:
            assert build(tmp_path / "venv") == find(tmp_path / "venv")
    runs = (tmp_path / "runs").read_text().splitlines()
    expected = f"-m pip install -q --disable-pip-version-check --require-hashes -r {environment.LOCK}"
    assert runs == [expected] * (1 + exit_code)


def test_the_lock_names_hashes_and_no_index() -> None:
    """Every requirement is checked, and whoever installs chooses where from."""
    lines = environment.LOCK.read_text().splitlines()
    requirements = [line for line in lines if not line.startswith(" ")]
    assert all("==" in line and line.endswith("\\") for line in requirements)
    assert not any("://" in line or line.startswith("-") for line in lines)
    assert any(line.startswith("pywb==") for line in requirements)
