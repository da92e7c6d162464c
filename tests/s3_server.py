"""A local S3 server for tests, which clients find through the environment."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from tests.hangs import HANG_S, wait_until

_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@contextmanager
def running_s3(log: Path) -> Iterator[str]:
    """Start an S3 server on this machine; yield its address. log: a file for what it prints."""
    with log.open("w") as file:
        server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"], stderr=file)
    try:
        wait_until(lambda: _ADDRESS.search(log.read_text()), log.read_text)
        yield _ADDRESS.findall(log.read_text())[0]
    finally:
        server.kill()
        server.wait()


def put(address: str, content: bytes = b"") -> None:
    """Put an object, or make a bucket."""
    request = Request(address, content, {"Content-Type": "application/octet-stream"}, method="PUT")
    with urlopen(request, timeout=HANG_S):
        pass
