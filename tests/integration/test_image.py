"""The container image, really built and run: on a local base, without an image registry or a package index.

The base is made by debootstrap, the wheels of deploy/requirements.lock are fetched beforehand. Building takes some
five minutes, so it happens only with TWINSIEVE_TEST_IMAGE=1. Podman, runc and debootstrap are installed if permitted.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deploy.packages import apt_get, install, run

VARIABLE = "TWINSIEVE_TEST_IMAGE"
PACKAGES = ("podman", "runc", "debootstrap")
ROOT = Path(__file__).parents[2]
BASE, IMAGE = "localhost/twinsieve-test-base", "localhost/twinsieve-test"
# Where a container may not raise its limits, those of the engine's defaults are refused.
ULIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
BUILD_TIMEOUT_S = 1_200.0

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} is not set: the image takes minutes to build"),
]


def call(*command: str | Path, timeout_s: float = 300.0) -> str:
    """Run a command that must succeed; return what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-2_000:]}{done.stderr[-4_000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def tools() -> None:
    """Install what is missing, or skip with what to install."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a base with debootstrap")
    missing = [package for package in PACKAGES if shutil.which(package) is None]
    command = apt_get() if missing else None
    if command is not None:
        run([*command, "update", "-qq"], "the image test")
        install(command, missing, "the image test")
    if missing := [package for package in PACKAGES if shutil.which(package) is None]:
        pytest.skip(f"not installed, and apt-get cannot: {', '.join(missing)}")


@pytest.fixture(scope="module")
def base(tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The running release of the distribution with its Python, from the archive that apt-get uses."""
    codename = platform.freedesktop_os_release()["VERSION_CODENAME"]
    listed = call("apt-get", "indextargets", "--format", "$(CODENAME) $(SITE)", "Created-By: Packages")
    archive = next(line.split(" ", 1)[1] for line in listed.splitlines() if line.startswith(f"{codename} "))
    folder = tmp_path_factory.mktemp("base")
    packages = "--include=python3,python3-venv,python-is-python3,ca-certificates"
    call("debootstrap", "--variant=minbase", packages, codename, folder / "root", archive, timeout_s=BUILD_TIMEOUT_S)
    call("tar", "-C", folder / "root", "-cf", folder / "root.tar", ".")
    call("podman", "import", folder / "root.tar", BASE)
    shutil.rmtree(folder)
    yield BASE
    call("podman", "rmi", "--force", BASE)


@pytest.fixture(scope="module")
def wheels(base: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The locked packages for the base's Python, by their hashes, and what builds those without a wheel."""
    folder = tmp_path_factory.mktemp("wheels")
    version = call("podman", "run", "--rm", *ULIMITS, "--network=none", base, "python", "--version").split()[1]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"--dest={folder}"]
    pip.append(f"--python-version={version.rpartition('.')[0]}")
    lock = ROOT / "deploy" / "requirements.lock"
    call(*pip, "--require-hashes", "--requirement", lock, timeout_s=BUILD_TIMEOUT_S)
    call(*pip, "setuptools", "wheel")
    return folder


@pytest.fixture(scope="module")
def image(base: str, wheels: Path) -> Iterator[str]:
    """The image, built without a network and without intermediate images."""
    arguments = [f"BASE={base}", "PIP_NO_INDEX=1", "PIP_FIND_LINKS=/wheels"]
    call("make", "-C", ROOT, "build", timeout_s=BUILD_TIMEOUT_S)
    command = ["podman", "build", *ULIMITS, "--network=none", "--layers=false", f"--volume={wheels}:/wheels:ro"]
    command += [f"--build-arg={argument}" for argument in arguments]
    call(*command, f"--file={ROOT / 'deploy' / 'Containerfile'}", f"--tag={IMAGE}", ROOT, timeout_s=BUILD_TIMEOUT_S)
    yield IMAGE
    call("podman", "rmi", "--force", IMAGE)


@pytest.fixture
def compiled(image: str, tmp_path: Path) -> Path:
    """A folder as Kubernetes makes it for an emptyDir, filled with the image's compiled code by the chart's command."""
    helpers = (ROOT / "deploy" / "helm" / "twinsieve" / "templates" / "_helpers.tpl").read_text("utf-8")
    [line] = re.findall(r"^ *command: (\[.* /compiled/.*\])$", helpers, re.MULTILINE)
    program, *arguments = yaml.safe_load(line)
    folder = tmp_path / "compiled"
    folder.mkdir()
    folder.chmod(0o2777)
    mount = f"--volume={folder}:/compiled"
    call("podman", "run", "--rm", *confined(), mount, f"--entrypoint={program}", image, *arguments)
    return folder


def confined() -> list[str]:
    """Return the options of a container as confined as in the chart, without a network."""
    rights = ["--cap-drop=ALL", "--security-opt=no-new-privileges", "--user=10001:10001"]
    return [*ULIMITS, *rights, "--read-only", "--network=none"]


def test_the_image_runs_the_version_of_the_code(image: str) -> None:
    """`twinsieve --version` on a read-only file system."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    printed = call("podman", "run", "--rm", *confined(), image, "--version")
    assert printed.split() == ["twinsieve,", "version", version]


def test_the_image_is_unprivileged(image: str) -> None:
    """By itself it runs as the user that the chart names."""
    assert call("podman", "run", "--rm", *ULIMITS, "--network=none", "--entrypoint=id", image, "-u").strip() == "10001"


def test_a_service_starts_as_in_the_chart(image: str, compiled: Path) -> None:
    """With state, temporary files and compiled code on volumes it compiles nothing, and waits for its brokers."""
    mounts = ["--volume=/state", f"--volume={compiled}:/var/cache/twinsieve", "--tmpfs=/tmp"]
    command = ["serve", "--bootstrap", "127.0.0.1:1", "--state", "/state/serve"]
    done = subprocess.run(
        ["podman", "run", "--rm", *confined(), *mounts, image, *command],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert "no broker at 127.0.0.1:1" in done.stderr
