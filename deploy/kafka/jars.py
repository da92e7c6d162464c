"""Fetch the broker's jars once, with Maven, into a folder named after the digest of the pom that lists them.

The first process takes a lock, fetches into a temporary folder and renames it. So a folder with the final
name is complete, and parallel test runs share it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from filelock import FileLock

from deploy.kafka.errors import ClusterError
from deploy.kafka.java import find_java, find_maven, java_home

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
CACHE = HERE / "libs"
FETCH_TIMEOUT_S = 600.0


def jars(cache: Path = CACHE) -> Path:
    """Return the folder with the broker's jars; fetch them if they are missing.

    Raises ClusterError if Java or Maven is missing, or if Maven cannot fetch.
    """
    folder = _folder(cache)
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "lock"):
        if not folder.is_dir():
            _fetch_as(folder)
    return folder


def fetched(cache: Path = CACHE) -> Path | None:
    """Return the folder with the broker's jars, None if they were not fetched yet."""
    return _folder(cache) if _folder(cache).is_dir() else None


def _folder(cache: Path) -> Path:
    return cache / hashlib.sha256(POM.read_bytes()).hexdigest()[:12]


def _fetch_as(folder: Path) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix="fetching-", dir=folder.parent))
    try:
        _copy_dependencies(unfinished)
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _copy_dependencies(into: Path) -> None:
    command = [
        str(find_maven()),
        *("-B", "-q", "-ntp", "-f", str(POM), "dependency:copy-dependencies"),
        *("-DincludeScope=runtime", f"-DoutputDirectory={into}"),
    ]
    print("Fetching the broker's jars with Maven", file=sys.stderr, flush=True)  # noqa: T201
    environment = {**os.environ, "JAVA_HOME": str(java_home(find_java()))}
    try:
        done = subprocess.run(  # noqa: S603
            command, env=environment, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ClusterError(
            f"Maven did not fetch the broker ({POM}) within {FETCH_TIMEOUT_S:g} s: check the network and try again."
        ) from error
    if done.returncode != 0 or not any(into.glob("kafka_*.jar")):
        raise ClusterError(
            f"Maven could not fetch the broker ({POM}); check the network and Maven's settings:"
            f"\n{done.stdout}{done.stderr}"
        )
