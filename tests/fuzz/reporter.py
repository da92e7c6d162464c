"""What a process of `make fuzz` leaves: examples and findings, written after each test, so that they outlive it."""

import json
import resource
from pathlib import Path

import pytest

from tests.fuzz.budget import examples_run

REPORT = "TWINSIEVE_FUZZ_REPORT"
"""Environment variable: the file to write."""

ADDRESS_SPACE = 8 << 30


class Reporter:
    """A plugin of pytest. Native code that asks for too much memory is refused it, which is a finding."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._findings: list[str] = []
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._findings.append(f"{report.nodeid}:\n{report.longreprtext}")
        content = {"examples": examples_run(), "findings": self._findings}
        self._path.write_text(json.dumps(content), "utf-8")
