"""An archive with revisits, replayed by pywb in an environment of its own."""

import base64
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dedup_service.interfaces.cli.main import run
from deploy.pywb import environment
from tests.crawler.running import json_lines
from tests.hangs import HANG_S
from tests.interfaces.cli.test_revisits import COPY, PAGE, Capture, write

pytestmark = pytest.mark.long

SCRIPT = Path(environment.__file__).with_name("replay.py")
CAPTURES = [
    Capture("https://a.example/bridge", PAGE, 1),
    Capture("https://b.example/bridge?a=1&b=2", PAGE, 2),  # a revisit
    Capture("https://c.example/bridge", COPY, 3),  # metadata
    Capture("https://a.example/bridge", PAGE, 4),  # a revisit of the same address
    Capture("https://a.example/bridge", COPY, 5, True),  # an update, stored in chunks
    Capture("https://d.example/bridge", COPY, 6, True),  # a revisit with chunks
]


@pytest.fixture(scope="module")
def python() -> Path:
    """Python of pywb's environment; where it cannot be made, the test is skipped and says why, but not in CI."""
    try:
        return environment.build()
    except environment.MissingPywbError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


def replayed(python: Path, archive: Path, captures: Sequence[Capture]) -> list[dict[str, Any]]:
    """Return what pywb serves for each capture."""
    asked = [part for one in captures for part in (one.date.translate({ord(c): None for c in "-:TZ"}), one.url)]
    index = archive.with_name(archive.name.replace(".warc.gz", ".cdxj"))
    command = [python, SCRIPT, archive, index, *asked]
    done = subprocess.run(command, cwd=archive.parent, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr
    return json_lines(done.stdout)


def test_pywb_replays_originals_and_revisits(python: Path, tmp_path: Path) -> None:
    """Each visit is served with its own headers and the payload it had; what was left out is not served as a page."""
    source, kept = write(tmp_path / "crawl.warc.gz", CAPTURES), tmp_path / "kept.warc.gz"
    assert run(["filter", str(source), "-q", "-o", str(tmp_path / "v.jsonl"), "--kept", str(kept), "--revisits"]) == 0
    served = dict(zip(range(1, 7), replayed(python, kept, CAPTURES), strict=True))
    left_out = served.pop(3)
    assert left_out["status"] == 404
    for number, page in served.items():
        assert (page["status"], page["visit"]) == (200, str(number))
        assert page["captured"] == f"Fri, 02 Jan 2026 03:04:0{number} GMT"
        assert base64.b64decode(page["body"]) == CAPTURES[number - 1].body
