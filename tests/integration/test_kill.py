"""A filter killed at random times and run again writes the output of one uninterrupted run.

`make test` kills three times, `make test-all` as often as `TWINSIEVE_KILLS` says (default 12). If a run ends before
it is killed, its output is compared, and the next run gets a new state folder, so that kills hit states of every age.
"""

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

KILLS = 3
MANY_KILLS = int(os.environ.get("TWINSIEVE_KILLS", "12"))
PAGES = 700
LIMIT_S = 300
WORDS = (
    "harbour council storm repair winter flood engineer budget vote ship school bridge market river teacher",
    "election farmer harvest doctor museum railway festival island volcano glacier orchestra lantern",
)
CHARACTERS = "新闻记者城市交通发展经济学校医院河流桥梁农业电影音乐科学研究天气台风市场价格居民政府会议"


def story(rng: random.Random) -> str:
    """Return a text that shares little with any other, Chinese or English."""
    if rng.random() < 0.5:
        words = " ".join(WORDS).split()
        return " ".join(f"{rng.choice(words)}{rng.randrange(99)}" for _ in range(90))
    return "".join(rng.choice(CHARACTERS) for _ in range(300))


def stream(seed: int) -> bytes:
    """Return JSON lines: new stories, copies, known URLs (same or other body), short and repeated pages."""
    rng = random.Random(seed)
    pages: list[tuple[str, str]] = []
    lines: list[str] = []
    for number in range(PAGES):
        chance = rng.random()
        url, text = f"http://site/{number}", story(rng)
        if pages and chance < 0.5:
            old_url, old_text = rng.choice(pages)
            if chance < 0.3:
                text = old_text
            elif chance < 0.4:
                url, text = old_url, old_text
            elif chance < 0.45:
                url = old_url
            else:
                lines.append(rng.choice(lines))
                continue
        elif chance > 0.95:
            text = "too short"
        pages.append((url, text))
        lines.append(json.dumps({"id": f"p{number}", "url": url, "title": text[:12], "text": text}))
    return "".join(f"{line}\n" for line in lines).encode()


@dataclass(frozen=True)
class Run:
    """One `filter` command over a file, with its state and output."""

    source: Path
    state: Path
    output: Path

    def killed_after(self, delay_s: float | None) -> bool:
        """Run the command, kill it after `delay_s` (None: never), and return whether it was killed."""
        command = [sys.executable, "-m", "dedup_service.interfaces.cli", "filter", str(self.source), "--quiet"]
        command += ["--state", str(self.state), "--output", str(self.output)]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            try:
                _, errors = process.communicate(timeout=delay_s or LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                return True
        assert process.returncode == 0, errors.decode()
        return False

    def whole_lines(self) -> list[bytes]:
        """Return the lines that were written, without a last line that was cut off."""
        content = self.output.read_bytes() if self.output.exists() else b""
        return content[: content.rfind(b"\n") + 1].splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [KILLS, pytest.param(MANY_KILLS, marks=pytest.mark.long)])
def test_killed_runs_complete_to_the_same_output(wanted: int, tmp_path: Path) -> None:
    """Every line written is that of the uninterrupted run, and a run that is not killed writes all."""
    rng = random.Random(20)
    source = tmp_path / "pages.jsonl"
    source.write_bytes(stream(seed=7))
    assert not Run(source, tmp_path / "first", tmp_path / "first.jsonl").killed_after(None)  # compiles the kernels once
    steady = Run(source, tmp_path / "steady", tmp_path / "steady.jsonl")
    started = time.monotonic()
    assert not steady.killed_after(None)
    whole_s = time.monotonic() - started
    expected = steady.whole_lines()
    assert len(expected) == PAGES
    assert len({json.loads(line)["verdict"] for line in expected}) == 5

    kills, age = 0, 0
    while kills < wanted:
        run = Run(source, tmp_path / f"state{age}", tmp_path / f"verdicts{age}.jsonl")
        started = time.monotonic()
        if run.killed_after(rng.uniform(0.2, 1.05) * whole_s):
            kills += 1
            written = run.whole_lines()
            assert written == expected[: len(written)]
        else:
            whole_s = min(whole_s, time.monotonic() - started)  # a machine that is less busy now ends every run in time
            assert run.whole_lines() == expected
            age += 1
    assert not run.killed_after(None)
    assert run.whole_lines() == expected
