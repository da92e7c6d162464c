"""Find Chromium, Prometheus, promtool and cargo, and install them if they are missing.

    python -m deploy.programs [chromium] [prometheus] [promtool] [cargo]

Without a name it means all of them; the tests of the dashboard, of the alerts and of the crate run them. They come from
the distribution's packages, if this user may install packages. If a program is still missing, one line says how to
install it, and the exit code is 1.
"""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from deploy.packages import apt_get, install, run


class MissingProgramError(Exception):
    """A program was not found and could not be installed. The message says how to install it."""


@dataclass(frozen=True, slots=True)
class Program:
    """An external program.

    names: on PATH, the first one found is used. package: of Debian. variable: environment variable with its
    path. elsewhere: how to install it on other systems.
    """

    names: tuple[str, ...]
    package: str
    variable: str
    elsewhere: str

    def find(self) -> Path:
        """Return its path; MissingProgramError with one line of instructions if it is not found."""
        named = os.environ.get(self.variable)
        found = shutil.which(named) if named else next(filter(None, map(shutil.which, self.names)), None)
        if found is None:
            raise MissingProgramError(
                f"{self.names[0]} was not found: install it (Debian: apt-get install {self.package}; {self.elsewhere}),"
                f" or set {self.variable} to its path."
            )
        return Path(found)

    def is_missing(self) -> bool:
        """Return whether it is not found."""
        try:
            self.find()
        except MissingProgramError:
            return True
        return False


CHROMIUM = Program(
    ("chromium", "chromium-browser", "google-chrome"),
    "chromium",
    "TWINSIEVE_CHROMIUM",
    "Fedora: dnf install chromium; macOS: brew install --cask chromium",
)
_FEDORA = "Fedora: dnf install golang-github-prometheus; macOS: brew install prometheus"
PROMETHEUS = Program(("prometheus",), "prometheus", "TWINSIEVE_PROMETHEUS", _FEDORA)
PROMTOOL = Program(("promtool",), "prometheus", "TWINSIEVE_PROMTOOL", _FEDORA)
CARGO = Program(("cargo",), "cargo", "CARGO", "others, and for clippy and rustfmt: rustup")
PROGRAMS = {program.names[0]: program for program in (CHROMIUM, PROMETHEUS, PROMTOOL, CARGO)}


def provide(*programs: Program) -> list[Path]:
    """Return the paths of programs; install missing ones if permitted, else raise MissingProgramError."""
    packages = sorted({program.package for program in programs if program.is_missing()})
    command = apt_get() if packages else None
    if command is not None:
        purpose = "the tests"
        run([*command, "update", "-qq"], purpose)
        install(command, packages, purpose)
    return [program.find() for program in programs]


def main(*names: str) -> int:
    """Run as a command with names of programs; return the exit code."""
    if unknown := set(names) - PROGRAMS.keys():
        print(f"no such program: {', '.join(unknown)}; known are {', '.join(PROGRAMS)}", file=sys.stderr)  # noqa: T201
        return 2
    try:
        provide(*(PROGRAMS[name] for name in names or PROGRAMS))
    except MissingProgramError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
