"""A real Prometheus that scrapes one process with our configuration and rules."""

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deploy.kafka.ports import free_ports
from tests.hangs import HANG_S

CONFIG = Path(__file__).parents[2] / "deploy" / "prometheus" / "prometheus.yml"
RULES = CONFIG.with_name("rules.yml")


class Prometheus:
    """A server with our configuration, scraping one process every second. rules: a copy of ours, or ours."""

    def __init__(self, program: Path, folder: Path, target: str, rules: Path = RULES) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        config = folder / "prometheus.yml"
        text = CONFIG.read_text()
        for old, new in (("localhost:8080", target), ("_interval: 15s", "_interval: 1s"), ("rules.yml", str(rules))):
            assert old in text
            text = text.replace(old, new)
        config.write_text(text)
        self._log = folder / "prometheus.log"
        command = [program, f"--config.file={config}", f"--storage.tsdb.path={folder}", "--log.level=warn"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log
            )

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer; fail if Prometheus reports an error."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=HANG_S) as response:
            answer = json.load(response)
        assert answer["status"] == "success", answer
        return answer["data"]

    def value(self, expression: str) -> float:
        """Return the value of an expression, 0 if there is none or no answer yet."""
        try:
            samples = self.ask("query", query=expression)["result"]
        except OSError:
            return 0.0
        return float(samples[0]["value"][1]) if samples else 0.0

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Wait until `condition` holds; fail if Prometheus ends."""
        deadline = time.monotonic() + HANG_S
        while not condition():
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.1)

    def end(self) -> None:
        """Stop the server."""
        self._process.terminate()
        self._process.wait(HANG_S)
