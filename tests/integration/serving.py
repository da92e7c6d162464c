"""Start a `serve` process as an operator does."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hangs import HANG_S
from tests.impatient_serve import VARIABLE

ROOT = Path(__file__).parents[2]


class Serving:
    """A `serve` process, its log lines and its HTTP port."""

    def __init__(
        self, log: Path, *arguments: object, module: str = "tests.impatient_serve", **settings: object
    ) -> None:
        """Start it. module: has the command line. settings: fields of `ServiceSettings` that no option has."""
        self.log = log
        command = [sys.executable, "-m", module, "serve", *map(str, arguments)]
        with log.open("wb") as lines:
            self.process = subprocess.Popen(
                [*command, "--http", "0", "--log-format", "json"],
                cwd=ROOT,
                stdout=lines,
                stderr=lines,
                env=os.environ | {VARIABLE: json.dumps(settings)},
            )

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The log lines, decoded."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    @property
    def url(self) -> str:
        """URL of probes, metrics and dashboard; waits until they are served."""
        self.wait_for(lambda: any(line["event"] == "listening" for line in self.lines))
        return next(line["http"] for line in self.lines if line["event"] == "listening")  # type: ignore[no-any-return]

    def get(self, path: str) -> tuple[int, str]:
        """Return status and body; (0, "") before it listens."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=HANG_S) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition()` holds; fail if the process ends first."""
        deadline = time.monotonic() + HANG_S
        while not condition():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def end(self, number: signal.Signals) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(HANG_S)
