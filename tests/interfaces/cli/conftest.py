"""A fixture that runs the command line in this process."""

import pytest

from dedup_service.interfaces.cli.main import run
from tests.interfaces.cli.running import Cli, Ran


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Cli:
    """Return a function that runs `twinsieve` with its arguments, and returns the exit code and output."""

    def call(*arguments: object) -> Ran:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        return Ran(code, *capfd.readouterr())

    return call
