"""A run over files that was interrupted goes on where it was, and its outputs are those of one run."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dedup_service.interfaces.cli.support import resume
from tests.interfaces.cli.running import Cli, article, page, write_lines
from tests.runtime.readers.samples import write_sample

KINDS = ("jsonl", "jsonl.gz", "parquet", "warc.gz", "folder")


@pytest.fixture
def inputs(tmp_path: Path) -> list[Path]:
    """Return inputs of several kinds, each with more pages than a batch."""
    folder = tmp_path / "in"
    folder.mkdir()
    pages = [page(number, article(number % 700, 30)) for number in range(900)]
    return [write_sample(folder, kind, pages) for kind in KINDS]


def command(inputs: list[Path], out: Path, state: Path) -> list[str]:
    """Return the arguments of a run."""
    files = ["-o", out / "verdicts.jsonl", "--kept", out / "kept.jsonl", "--errors", out / "errors.jsonl"]
    return ["filter", *map(str, inputs), *map(str, files), "--state", str(state), "--json", "--processes", "1"]


def written(out: Path) -> dict[str, bytes]:
    """Return what a run wrote."""
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.mark.long
def test_killed_at_random_places_it_completes_its_outputs(cli: Cli, inputs: list[Path], tmp_path: Path) -> None:
    """SIGKILL, SIGTERM and SIGINT in turn: outputs and counts are those of a run that was left alone."""
    (tmp_path / "whole").mkdir()
    whole = cli(*command(inputs, tmp_path / "whole", tmp_path / "state-whole"))
    expected = json.loads(whole.err.splitlines()[-1])
    out = tmp_path / "out"
    out.mkdir()
    arguments = command(inputs, out, tmp_path / "state")
    chosen = random.Random(1)
    for attempt, number in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)):
        start = "from dedup_service.interfaces.cli.support import resume; resume.EVERY_S = 0.0"
        code = f"{start}; import sys; from dedup_service.interfaces.cli.main import run; sys.exit(run(sys.argv[1:]))"
        target = _lines(out / "verdicts.jsonl") + chosen.randint(1, 500)
        process = subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, text=True)
        note = tmp_path / "state" / resume.NOTE_FILE  # comes behind the lines
        while process.poll() is None and not (note.exists() and _lines(out / "verdicts.jsonl") >= target):
            time.sleep(0.005)
        process.send_signal(number)
        assert ("going on behind record" in process.communicate()[1]) == (attempt > 0)
        assert process.returncode == (-signal.SIGKILL, 143, 130)[attempt]
    ran = cli(*arguments)
    assert "going on behind record" in ran.err
    assert written(out) == written(tmp_path / "whole")
    summary = json.loads(ran.err.splitlines()[-1])
    for name in ("pages", "verdicts", "bad_records", "guards"):
        assert summary[name] == expected[name]
    assert not (tmp_path / "state" / resume.NOTE_FILE).exists()


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.fixture
def interrupted(inputs: list[Path], tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the arguments of a run whose disk was full in the middle."""
    out = tmp_path / "out"
    out.mkdir()
    arguments = command(inputs[:2], out, tmp_path / "state")
    monkeypatch.setattr(resume, "EVERY_S", 0.0)
    write = os.write
    left = [3]

    def fails(descriptor: int, data: bytes) -> int:
        if os.path.realpath(f"/proc/self/fd/{descriptor}").endswith("verdicts.jsonl"):
            left[0] -= 1
            if left[0] < 0:
                raise OSError(28, "No space left on device")
        return write(descriptor, data)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", fails)
        assert cli(*arguments).code == 1
    assert (tmp_path / "state" / resume.NOTE_FILE).exists()
    return arguments


def test_of_an_input_that_has_changed_since_records_keep_their_verdicts(
    interrupted: list[str], inputs: list[Path], tmp_path: Path, cli: Cli
) -> None:
    """As of a download that went on: what the run decided before it was interrupted is no further visit."""
    with inputs[0].open("ab") as file:
        file.write(b"\n" + json.dumps(page(1000)).encode() + b"\n")
    assert "has changed since the run that was interrupted" in cli(*interrupted).err
    verdicts = [json.loads(line)["verdict"] for line in (tmp_path / "out" / "verdicts.jsonl").read_bytes().splitlines()]
    assert verdicts[:512] == ["unique"] * 512
    cli(*interrupted)  # it has ended
    assert (tmp_path / "out" / "verdicts.jsonl").read_bytes().count(b'"unchanged"') >= 512


@pytest.mark.parametrize("change", ["output", "option", "note gone", "note", "none"])
def test_it_reads_all_again_if_anything_is_different(
    change: str, interrupted: list[str], inputs: list[Path], tmp_path: Path, cli: Cli
) -> None:
    """The outputs are those of a run from the start in each case."""
    out = tmp_path / "out"
    more: list[str] = []
    if change == "output":
        (out / "verdicts.jsonl").write_bytes(b"")
    elif change == "option":
        more = ["--url-prefix", "https://"]
    elif change == "note gone":
        (tmp_path / "state" / resume.NOTE_FILE).unlink()
    elif change == "note":
        note = tmp_path / "state" / resume.NOTE_FILE
        note.write_text(note.read_text("utf-8").replace('"faults":0,', ""), "utf-8")
    ran = cli(*interrupted, *more)
    assert ("going on behind record" in ran.err) == (change == "none")
    (tmp_path / "whole").mkdir()
    cli(*command(inputs[:2], tmp_path / "whole", tmp_path / "state"), *more)
    assert written(out) == written(tmp_path / "whole")


def test_a_run_that_ended_begins_anew(inputs: list[Path], tmp_path: Path, cli: Cli) -> None:
    """Its outputs may be gone since: each record gets the verdict that it had."""
    out = tmp_path / "out"
    out.mkdir()
    arguments = command(inputs[:1], out, tmp_path / "state")
    cli(*arguments)
    first = written(out)
    (out / "verdicts.jsonl").unlink()
    ran = cli(*arguments)
    assert "going on" not in ran.err
    assert written(out) == first


def test_a_note_without_its_state_is_no_note(interrupted: list[str], tmp_path: Path, cli: Cli) -> None:
    """Who removes the journal and the pages begins anew: pages before the note would not be known."""
    for path in list((tmp_path / "state").rglob("*")):
        if path.is_file() and path.name != resume.NOTE_FILE:
            path.unlink()
    assert "going on" not in cli(*interrupted).err


def stopped_in_the_middle(cli: Cli, patch: pytest.MonkeyPatch, *arguments: object, batches: int = 2) -> None:
    """Run a command, whose process is as good as killed behind a note."""
    note, left = resume.ProgressNotes.note, [batches]

    def last(self: resume.ProgressNotes, sync: Callable[[], None]) -> None:
        if left[0]:
            note(self, sync)
        left[0] -= 1
        if left[0] <= 0:
            raise OSError(28, "No space left on device")

    with patch.context() as patched:
        patched.setattr(resume, "EVERY_S", 0.0)
        patched.setattr(resume.ProgressNotes, "note", last)
        assert cli(*arguments).code == 1


@pytest.mark.parametrize("change", ["removed", "emptied", "none"])
def test_a_folder_of_kept_pages_that_is_gone_is_written_anew(
    change: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages before the note are not lost with it."""
    pages = [page(number, article(number, 30)) for number in range(1100)]
    mirror, kept = write_sample(tmp_path, "folder", pages), tmp_path / "kept"
    arguments = ("filter", mirror, "-o", tmp_path / "v.jsonl", "--kept", kept, "--state", tmp_path / "state")
    stopped_in_the_middle(cli, monkeypatch, *arguments, batches=1)
    if change != "none":
        shutil.rmtree(kept)
    if change == "emptied":
        kept.mkdir()
    ran = cli(*arguments, "--processes", "1")
    assert ("going on" in ran.err) == (change == "none")
    assert len(list(kept.rglob("*.html"))) == 1100


def test_a_pipe_is_read_from_its_start(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can know whether another pipe of the same name has the same lines."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    arguments = ("filter", pipe, "-o", tmp_path / "v.jsonl", "--state", tmp_path / "state", "--processes", "1")
    for first, number in ((0, 1), (1000, 0)):
        lines = write_lines(tmp_path / "lines", [page(first + n, article(first + n, 30)) for n in range(600)])
        copying = subprocess.Popen(["sh", "-c", 'cat "$1" > "$2"', "sh", str(lines), str(pipe)])
        if number:
            stopped_in_the_middle(cli, monkeypatch, *arguments, batches=1)
        else:
            ran = cli(*arguments)
            assert "going on" not in ran.err
        copying.wait()
    assert _lines(tmp_path / "v.jsonl") == 600
