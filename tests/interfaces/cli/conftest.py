"""A fixture that runs the command line in this process."""

import os

import pytest

from dedup_service.interfaces.cli.main import run
from tests.interfaces.cli.running import Cli, Ran


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Return a function that runs `twinsieve` with its arguments, and returns the exit code and output.

    As on one core: a run then starts one worker, unless it asks for more. The environment names no broker.
    """
    monkeypatch.delenv("TWINSIEVE_BOOTSTRAP", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0})

    def call(*arguments: object) -> Ran:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        return Ran(code, *capfd.readouterr())

    return call
