"""Find or make the environment of pywb: a venv with what pywb.lock has, checked by its hashes.

    python -m deploy.pywb.environment

The test that replays an archive runs pywb there: its requirements (brotlipy, an older Werkzeug) exclude ours. It is
made once, in about a minute, in a folder of build/ that is named after the digest of the lock and the version of
Python. If that fails, one line says so, and the exit code is 1.

Another version: `make lock`.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / "build" / "pywb"
LOCK = HERE / "pywb.lock"
TIMEOUT_S = 900.0


class MissingPywbError(Exception):
    """pywb's environment was not found or could not be made. The message says what to do."""


def find(cache: Path = CACHE) -> Path:
    """Return the path of Python in pywb's environment; MissingPywbError if it was not made."""
    python = _folder(cache) / "bin" / "python"
    if not python.exists():
        raise MissingPywbError("pywb was not installed: run python -m deploy.pywb.environment")
    return python


def build(cache: Path = CACHE) -> Path:
    """Return what `find` does; make the environment first if it is missing, MissingPywbError if that fails."""
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "lock"):
        folder = _folder(cache)
        if not folder.exists():
            print("Installing pywb into an environment of its own", file=sys.stderr, flush=True)  # noqa: T201
            unfinished = folder.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(unfinished)])
            pip = [str(unfinished / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            _run([*pip, "--require-hashes", "-r", str(LOCK)])
            unfinished.rename(folder)
    return find(cache)


def main() -> int:
    """Run as a command; return the exit code."""
    try:
        build()
    except MissingPywbError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _folder(cache: Path) -> Path:
    """Return where the environment belongs. Only `python` works there: other programs name the folder before."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return cache / f"{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]}-{version}"


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingPywbError(f"pywb could not be installed: {error}") from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise MissingPywbError(f"pywb could not be installed: {' '.join(last)}")


if __name__ == "__main__":
    sys.exit(main())
