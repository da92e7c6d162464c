"""Install packages of the distribution: with apt-get, as root or with sudo if it needs no password.

Nothing here raises: actions and failures are printed on stderr. The caller checks afterwards what can be
found.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

_TIMEOUT_S = 1_800.0


def apt_get() -> list[str] | None:
    """Return the apt-get command that can install packages without a password, None if there is none."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return ["apt-get"]
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0:  # noqa: S603
        return [sudo, "-n", "apt-get"]
    return None


def can_install(command: Sequence[str], package: str) -> bool:
    """Return whether this release of the distribution has `package`. command: from `apt_get`."""
    simulation = [*command, "install", "--simulate", package]  # apt-cache also lists names without a package
    return subprocess.run(simulation, capture_output=True, check=False).returncode == 0  # noqa: S603


def install(command: Sequence[str], packages: Sequence[str], purpose: str) -> None:
    """Install packages. command: from `apt_get`; its `update` must have run. purpose: as in `run`."""
    run([*command, "install", "-qq", "--yes", "--no-install-recommends", *packages], purpose)


def run(command: Sequence[str], purpose: str) -> None:
    """Run a command and print it; on failure, print its errors. purpose: what needs it, for the message."""
    print(f"Installing requirements of {purpose}: {' '.join(command)}", file=sys.stderr, flush=True)  # noqa: T201
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(  # noqa: S603
            command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)  # noqa: T201
    else:
        print(done.stderr if done.returncode else "", file=sys.stderr, end="")  # noqa: T201
