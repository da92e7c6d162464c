"""Chromium, Prometheus and promtool: what the tests of the dashboard run, got where they are missing.

    python -m deploy.programs

They come from the distribution's packages where we may install them. What is still missing then is said in one line,
and the exit code is 1.
"""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from deploy.packages import apt_get, install, run

__all__ = ["CHROMIUM", "PROGRAMS", "PROMETHEUS", "PROMTOOL", "MissingProgramError", "Program", "provide"]


class MissingProgramError(Exception):
    """A program is not here and could not be got; the message says how to get it."""


@dataclass(frozen=True, slots=True)
class Program:
    """names: on PATH, the first that is there. package: of Debian. variable: of the environment, that names one.

    elsewhere: how other systems install it.
    """

    names: tuple[str, ...]
    package: str
    variable: str
    elsewhere: str

    def find(self) -> Path:
        """Where it is; MissingProgramError with the one line that says how to get it."""
        named = os.environ.get(self.variable)
        found = shutil.which(named) if named else next(filter(None, map(shutil.which, self.names)), None)
        if found is None:
            raise MissingProgramError(
                f"{self.names[0]} was not found: install it (Debian: apt-get install {self.package}; {self.elsewhere}),"
                f" or set {self.variable} to where it is."
            )
        return Path(found)

    def is_missing(self) -> bool:
        """Whether it is not to be found."""
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
PROGRAMS = (CHROMIUM, PROMETHEUS, PROMTOOL)


def provide(*programs: Program) -> list[Path]:
    """Return where they are, those that were missing installed where we may; else MissingProgramError."""
    packages = sorted({program.package for program in programs if program.is_missing()})
    command = apt_get() if packages else None
    if command is not None:
        what_for = "the tests of the dashboard need"
        run([*command, "update", "-qq"], what_for)
        install(command, packages, what_for)
    return [program.find() for program in programs]


def main() -> int:
    """Run as a command; returns the exit code."""
    try:
        provide(*PROGRAMS)
    except MissingProgramError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
