"""`filter --dashboard`: the dashboard of a running filter."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from dedup_service.interfaces.http.access_guard import ENV_VARIABLE
from tests.hangs import HANG_S
from tests.interfaces.cli.running import Cli, article, page, write_lines


def test_figures_while_it_runs(tmp_path: Path) -> None:
    """They cover duplicates, index and latencies of the pages so far; the verdicts are written as without it."""
    command = [sys.executable, "-m", "dedup_service.interfaces.cli", "filter", "-", "--dashboard", "0", "--quiet"]
    lines = [page(1), page(2, article(1), title="<script>alert(1)</script>"), {"no": "page"}]
    with subprocess.Popen(
        [*command, "--state", str(tmp_path / "state")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        where = process.stderr.readline().decode().split()[-1]
        process.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        process.stdin.flush()
        verdicts = [json.loads(process.stdout.readline()) for _ in range(2)]
        with urllib.request.urlopen(f"{where}api/stats", timeout=HANG_S) as answer:
            stats = json.load(answer)
        with urllib.request.urlopen(f"{where}api/duplicates", timeout=HANG_S) as answer:
            rows = json.load(answer)["rows"]
        with urllib.request.urlopen(f"{where}metrics", timeout=HANG_S) as answer:
            metrics = answer.read().decode()
        process.stdin.close()
        assert process.wait(HANG_S) == 3
    assert [verdict["verdict"] for verdict in verdicts] == ["unique", "duplicate"]
    summary = stats["summary"]
    assert (summary["mode"], summary["pages"], summary["rejected"], summary["entries"]) == ("filter", 2, 1, 1)
    assert {(row["step"], row["part"]) for row in stats["latency"]} == {
        ("fingerprint", "prepare"), ("decide", "decide"), ("decide", "commit"),
    }  # fmt: skip
    assert stats["index"]["channels"]["words"]["fingerprints"] == 1
    assert [(row["url"], row["title"]) for row in rows] == [(lines[1]["url"], "<script>alert(1)</script>")]
    assert 'twinsieve_pages_total{verdict="duplicate"} 1.0' in metrics


def test_another_address_needs_a_token(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is checked before anything is read or created."""
    monkeypatch.delenv(ENV_VARIABLE, raising=False)
    pages = write_lines(tmp_path / "pages.jsonl", [page(1)])
    ran = cli("filter", pages, "--dashboard", "0.0.0.0:0", "--state", tmp_path / "state")
    assert ran.code == 2
    assert "token_urlsafe" in ran.err
    assert not (tmp_path / "state").exists()
    monkeypatch.setenv(ENV_VARIABLE, "short")
    assert cli("filter", pages, "--dashboard", "0.0.0.0:0").code == 2
    monkeypatch.setenv(ENV_VARIABLE, "correct-horse-battery")
    ran = cli("filter", pages, "--dashboard", "0.0.0.0:0", "--quiet")
    assert (ran.code, len(ran.lines)) == (0, 1)


def test_without_the_extra_it_says_what_to_install(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes before any page is decided."""
    for name in [
        name for name in sys.modules if name.startswith(("dedup_service.interfaces.http", "starlette", "uvicorn"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    pages = write_lines(tmp_path / "pages.jsonl", [page(1)])
    ran = cli("filter", pages, "--dashboard", "0", "--state", tmp_path / "state")
    assert ran.code == 2
    assert "pip install 'twinsieve[dashboard]'" in ran.err
    assert not (tmp_path / "state").exists()
