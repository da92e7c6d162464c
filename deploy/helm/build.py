"""Find Helm, or build it from its Go module: the version of go.mod, checked by the hashes of go.sum.

    python -m deploy.helm.build

The tests of the chart run it. It is built once, for about two minutes of processor time, into a folder named
after the digest of go.sum; later builds reuse what Go keeps in its own cache. If there is no Go, one line says
what to install, and the exit code is 1.

Another version: `go get -tool helm.sh/helm/v4/cmd/helm@VERSION` and `go mod tidy` in this folder.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

HERE = Path(__file__).parent
CACHE = HERE / "bin"
VARIABLE = "TWINSIEVE_HELM"
BUILD_TIMEOUT_S = 1_200.0


class MissingHelmError(Exception):
    """Helm was not found or could not be built. The message says what to do."""


def find(cache: Path = CACHE) -> Path:
    """Return Helm's path: the one that TWINSIEVE_HELM names, or the one built before; otherwise MissingHelmError."""
    if named := os.environ.get(VARIABLE):
        if found := shutil.which(named):
            return Path(found)
        raise MissingHelmError(f"{VARIABLE} is {named}, which is no program: set it to the path of helm, or unset it.")
    program = _program(cache)
    if not program.is_file():
        raise MissingHelmError(
            f"Helm was not built: run python -m deploy.helm.build, or set {VARIABLE} to its path (version 3 or 4)."
        )
    return program


def build(cache: Path = CACHE) -> Path:
    """Return Helm's path as `find` does; build it first if it is missing, MissingHelmError if that fails."""
    if os.environ.get(VARIABLE):
        return find(cache)
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "lock"):
        if not _program(cache).is_file():
            _build_as(_program(cache))
    return find(cache)


def main() -> int:
    """Run as a command; return the exit code."""
    try:
        build()
    except MissingHelmError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _program(cache: Path) -> Path:
    return cache / hashlib.sha256((HERE / "go.sum").read_bytes()).hexdigest()[:12] / "helm"


def _build_as(program: Path) -> None:
    compiler = shutil.which("go")
    if compiler is None:
        raise MissingHelmError(
            f"Go was not found: install the version of {HERE / 'go.mod'} or a newer one,"
            f" or set {VARIABLE} to the path of helm."
        )
    unfinished = program.parent.with_suffix(".unfinished") / program.name
    arguments = ["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-o", str(unfinished)]
    print("Building Helm for the tests of the chart", file=sys.stderr, flush=True)  # noqa: T201
    try:
        done = subprocess.run(  # noqa: S603
            [compiler, *arguments, "helm.sh/helm/v4/cmd/helm"],
            cwd=HERE,
            env={**os.environ, "CGO_ENABLED": "0"},
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise MissingHelmError(f"Go did not build Helm within {BUILD_TIMEOUT_S:g} s: try again.") from error
    if done.returncode != 0:
        raise MissingHelmError(f"Go could not build Helm; check the network and try again:\n{done.stderr}")
    unfinished.parent.rename(program.parent)


if __name__ == "__main__":
    sys.exit(main())
