"""The distribution's packages, where we may install them: apt-get, as root or with a sudo that asks nothing.

What matters is what can be found afterwards, so nothing here raises: it tells on stderr what it does and what failed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

__all__ = ["apt_get", "can_install", "install", "run"]

_TIMEOUT_S = 1_800.0


def apt_get() -> list[str] | None:
    """The command that may install packages without asking anything, None where there is none."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return ["apt-get"]
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0:  # noqa: S603
        return [sudo, "-n", "apt-get"]
    return None


def can_install(command: Sequence[str], package: str) -> bool:
    """Whether this release of the distribution has `package`; command: of `apt_get`."""
    tried = [*command, "install", "--simulate", package]  # apt-cache also knows names without a package
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0  # noqa: S603


def install(command: Sequence[str], packages: Sequence[str], what_for: str) -> None:
    """Install packages; command: of `apt_get`, after an update."""
    run([*command, "install", "-qq", "--yes", "--no-install-recommends", *packages], what_for)


def run(command: Sequence[str], what_for: str) -> None:
    """Run a command that may fail, and say so."""
    print(f"Getting what {what_for}: {' '.join(command)}", file=sys.stderr, flush=True)  # noqa: T201
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(  # noqa: S603
            command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)  # noqa: T201
    else:
        print(done.stderr if done.returncode else "", file=sys.stderr, end="")  # noqa: T201
