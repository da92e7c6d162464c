"""WARC files and folders as input of `filter`, and its progress bar on a terminal."""

import gzip
import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard

from tests.hangs import HANG_S
from tests.interfaces.cli.running import Cli, article, page, write_lines


def unpacked_frames(packed: bytes) -> bytes:
    """Return what all frames of a .zst file have."""
    return zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True).read()


def html(seed: int, frame: str = "article") -> bytes:
    """Return a page with an article for the seed, inside the element `frame`."""
    paragraphs = "".join(f"<p>{article(seed * 10 + part, 60)}.</p>" for part in range(3))
    return f"<html><body><{frame}><h1>Story</h1>{paragraphs}</{frame}></body></html>".encode()


def response(number: int, url: str, body: bytes) -> bytes:
    """Return one WARC response record as a separate gzip member."""
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012}>\r\n"
        f"WARC-Target-URI: {url}\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n")


def test_a_warc_file_gives_a_warc_file(cli: Cli, tmp_path: Path) -> None:
    """The kept records are, byte for byte, those whose verdict is not duplicate."""
    records = [
        response(1, "https://a.example/1", html(1)),
        response(2, "https://b.example/2", html(1, "main")),
        response(3, "https://a.example/3", html(3)),
    ]
    archive, kept = tmp_path / "crawl.warc.gz", tmp_path / "kept.warc.gz"
    archive.write_bytes(b"".join(records))
    ran = cli("filter", archive, "--kept", kept)
    assert ran.code == 0
    assert [line["verdict"] for line in ran.lines] == ["unique", "duplicate", "unique"]
    assert [line["url"] for line in ran.lines] == ["https://a.example/1", "https://b.example/2", "https://a.example/3"]
    assert kept.read_bytes() == records[0] + records[2]
    assert [line["verdict"] for line in cli("filter", kept).lines] == ["unique", "unique"]


@pytest.mark.parametrize("suffix", [".xz", ".bz2", ".warc.zst"])
def test_other_compressions_are_refused_with_what_unpacks_them(cli: Cli, tmp_path: Path, suffix: str) -> None:
    """Their bytes were reported as thousands of bad lines."""
    path = tmp_path / f"pages{suffix}"
    path.write_bytes(bytes(range(256)))
    ran = cli("filter", path)
    assert (ran.code, ran.out) == (2, "")
    assert "has to be unpacked first" in ran.err


def test_a_folder_gives_a_folder(cli: Cli, tmp_path: Path) -> None:
    """Kept files have the same relative paths and bytes; duplicates are not copied."""
    site, kept = tmp_path / "site", tmp_path / "kept"
    files = {"news/1.html": html(1), "news/2.html": html(2), "repost/1.html": html(1, "main"), "empty.html": b""}
    for name, body in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(body)
    ran = cli("filter", site, "--kept", kept)
    assert {line["id"]: line["verdict"] for line in ran.lines} == {
        "empty.html": "undecided",
        "news/1.html": "unique",
        "news/2.html": "unique",
        "repost/1.html": "duplicate",
    }
    found = {str(path.relative_to(kept)): path.read_bytes() for path in kept.rglob("*") if path.is_file()}
    assert found == {name: body for name, body in files.items() if name != "repost/1.html"}


def test_an_output_folder_inside_the_input_is_refused(cli: Cli, tmp_path: Path) -> None:
    """Otherwise the next run would read the output of this one."""
    (tmp_path / "1.html").write_bytes(html(1))
    ran = cli("filter", tmp_path, "--kept", tmp_path / "kept")
    assert ran.code == 2
    assert "name a folder outside it" in ran.err


@pytest.mark.slow
def test_on_a_terminal_there_is_a_progress_bar(tmp_path: Path) -> None:
    """It is drawn on stderr, with a name that looks like markup; standard output has only verdicts."""
    (tmp_path / "old[").mkdir()
    path = write_lines(tmp_path / "old[" / "pages].jsonl", [page(number) for number in range(600)])
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "dedup_service.interfaces.cli", "filter", str(path)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    )
    os.close(theirs)
    shown = bytearray()

    def read() -> None:
        with suppress(OSError):  # how Linux says that the other side of a terminal is closed
            while chunk := os.read(ours, 65536):
                shown.extend(chunk)

    reader = threading.Thread(target=read)  # while it runs: a terminal takes some KiB, then its writer waits
    reader.start()
    out, _ = process.communicate(timeout=HANG_S)
    reader.join()
    os.close(ours)
    assert process.returncode == 0
    assert len([json.loads(line) for line in out.splitlines()]) == 600
    assert "pages]" in shown.decode()
    assert "600 pages" in shown.decode()


def test_a_folder_with_a_link_to_etc_passwd(cli: Cli, tmp_path: Path) -> None:
    """It is counted as a bad record and not copied into --kept; links in --kept are not followed, either."""
    folder, kept, outside = tmp_path / "site", tmp_path / "kept", tmp_path / "outside"
    for path in (folder / "sub", kept, outside):
        path.mkdir(parents=True)
    (folder / "a.html").write_bytes(html(1))
    (folder / "passwd.html").symlink_to("/etc/passwd")
    (folder / "etc").symlink_to("/etc")
    ran = cli("filter", folder, "--kept", kept, "--json")
    assert ran.code == 3
    assert json.loads(ran.err.splitlines()[-1])["bad_records"] == 2
    assert [path.name for path in kept.rglob("*")] == ["a.html"]
    (folder / "sub/b.html").write_bytes(html(2))
    (kept / "sub").symlink_to(outside)
    refused = cli("filter", folder, "--kept", kept, "--quiet")
    assert (refused.code, list(outside.iterdir())) == (1, [])
    assert "remove a link" in refused.err


def test_several_inputs_are_one_stream(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files, what a pattern matches and standard input are read in their order: the same verdicts as of one file."""
    pages = [page(number % 25, f"https://a.example/{number}") for number in range(60)]
    whole = write_lines(tmp_path / "whole.jsonl", pages)
    write_lines(tmp_path / "first.jsonl", pages[:20])
    for name, part in {"b/2": pages[35:45], "a/1": pages[20:30], "b/1": pages[30:35]}.items():
        (tmp_path / "day" / name).parent.mkdir(parents=True, exist_ok=True)
        write_lines(tmp_path / "day" / f"{name}.jsonl", part)
    kept = tmp_path / "kept.jsonl"
    with write_lines(tmp_path / "rest.jsonl", pages[45:]).open(encoding="utf-8") as rest:
        monkeypatch.setattr(sys, "stdin", rest)
        ran = cli("filter", tmp_path / "first.jsonl", tmp_path / "day/**/*.jsonl", "-", "--kept", kept)
    expected = cli("filter", whole, "--kept", tmp_path / "expected.jsonl")
    assert (ran.code, ran.lines) == (0, expected.lines)
    assert kept.read_bytes() == (tmp_path / "expected.jsonl").read_bytes()


def test_bad_records_name_their_input(cli: Cli, tmp_path: Path) -> None:
    """On stderr and in the errors file; its lines are counted for each input."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_bytes(json.dumps(page(1)).encode() + b"\n{\n")
    errors = tmp_path / "errors.jsonl"
    ran = cli("filter", tmp_path / "one.jsonl", tmp_path / "two.jsonl", "--errors", errors, "--quiet")
    assert ran.code == 3
    assert f"twinsieve: {tmp_path / 'two.jsonl'}: line 2: " in ran.err
    found = [json.loads(line) for line in errors.read_text().splitlines()]
    assert [(Path(one["source"]).name, one["line"]) for one in found] == [("one.jsonl", 2), ("two.jsonl", 2)]


def test_several_folders_keep_their_names(cli: Cli, tmp_path: Path) -> None:
    """Paths begin with the folder's name, in ids, addresses and kept files, those over the size limit included."""
    mirror, kept = tmp_path / "mirror", tmp_path / "kept"
    for number, host in enumerate(("a.example", "b.example"), 1):
        (mirror / host / "sub").mkdir(parents=True)
        (mirror / host / "sub" / "index.html").write_bytes(html(number) + b" " * (11 << 20))
    (mirror / "b.example").rename(tmp_path / "b.example")
    (mirror / "b.example").symlink_to(tmp_path / "b.example")  # an input itself may be a link
    ran = cli("filter", mirror / "*", "--url-prefix", "https://", "--kept", kept)
    assert [(line["id"], line["url"]) for line in ran.lines] == [
        (f"{host}/sub/index.html", f"https://{host}/sub/index.html") for host in ("a.example", "b.example")
    ]
    for host in ("a.example", "b.example"):
        name = f"{host}/sub/index.html"
        assert (kept / name).read_bytes() == (mirror / name).read_bytes()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["one.jsonl", "missing.jsonl"], "there is no file or folder"),
        (["one.jsonl", "*.warc"], "no file or folder matches"),
        (["one.jsonl", "a/d.parquet"], "the folder 'a/d.parquet' has no files *.parquet: name another one"),
        (["a/*.parquet"], "no file or folder that 'a/*.parquet' matches has files *.parquet"),
        (["one.jsonl", "./one.jsonl"], "is named twice"),
        (["-", "-"], "is named twice"),
        (["a/site", "b/site"], "have the same name"),
        (["a", "a/site"], "the folder 'a/site' is inside the input 'a'"),
        (["b/**"], "is inside the input 'b/'"),
        (["one.jsonl", ""], "an input has an empty name"),
        ([""], "an input has an empty name"),
        (["one.jsonl", "a/site", "--kept", "kept"], "inputs of several kinds"),
        (["one.jsonl", "two.jsonl", "--kept", "two.jsonl"], "are the same file"),
        (["a/site", "b", "--kept", "b/kept"], "name a folder outside it"),
        (["one.jsonl", "--state", "a", "-o", "a/journal.sqlite"], "is in the state folder"),
        (["one.jsonl", "--state", "a", "--errors", "a/../a/site/new"], "is in the state folder"),
        (["a/site", "--state", "a"], "FILE 'a/site' is in the state folder"),
        (["file://{here}/one.jsonl", "-o", "one.jsonl"], "are the same file"),
        (["file://{here}/*.jsonl", "--kept", "two.jsonl"], "two.jsonl' is among the files that 'file://"),
        (["one.jsonl", "t*.jsonl", "-o", "b/../two.jsonl"], "'b/../two.jsonl' is among the files that 't*.jsonl'"),
        (["*.jsonl", "--errors", "new.jsonl"], "among the files that '*.jsonl' stands for, so it would be read"),
        (["**/*.jsonl", "-o", "b/new.jsonl"], "write it to another folder, or give a pattern that leaves it out"),
        (["one.jsonl", "file://{here}/one.jsonl"], "is named twice"),
        (["one.jsonl", "-o", "file://{here}/new.jsonl"], "is an address"),
        (["a/site", "--kept", "s3://bucket/kept"], "is an address"),
        (["one.jsonl", "--base", "file://{here}/a", "-o", "a/new"], "is in the state folder"),
    ],
)
def test_wrong_inputs_are_refused_before_any_is_read(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], message: str
) -> None:
    """What cannot be opened, is named twice or does not fit together ends the run with 2 and no verdict."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        write_lines(tmp_path / f"{name}.jsonl", [page(1)])
    for folder in ("a/site", "a/d.parquet", "b/site"):
        (tmp_path / folder).mkdir(parents=True)
    ran = cli("filter", *(name.format(here=tmp_path) for name in names))
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


@pytest.mark.parametrize(
    "options",
    [
        ["-o", "verdicts.jsonl", "--kept", "kept"],
        ["-o", "nowhere/verdicts.jsonl", "--kept", "kept.jsonl"],
        ["-o", "verdicts.jsonl", "--kept", "kept.jsonl", "--errors", "nowhere/errors.jsonl"],
        ["-o", "verdicts.jsonl", "--kept", "kept.jsonl", "--errors", "folder"],
        ["-o", "verdicts.jsonl", "--kept", "kept.jsonl", "--errors", "pages.jsonl/errors.jsonl"],
        ["-o", "verdicts.jsonl", "--kept", "kept.jsonl", "--errors", "link"],
        ["-o", "verdicts.jsonl", "--kept", "kept.jsonl", "--errors", "e" * 300],
    ],
)
def test_a_refused_run_leaves_the_outputs_of_an_earlier_one(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    """One output that cannot be written empties no other."""
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "pages.jsonl", [page(1)])
    for folder in ("site", "folder"):
        (tmp_path / folder).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "errors.jsonl")
    for name in ("verdicts.jsonl", "kept.jsonl"):
        (tmp_path / name).write_text("earlier\n", encoding="utf-8")
    ran = cli("filter", "pages.jsonl", "site", *options)
    assert ran.code == 2
    assert [(tmp_path / name).read_text() for name in ("verdicts.jsonl", "kept.jsonl")] == ["earlier\n", "earlier\n"]


@pytest.mark.parametrize(("ending", "unpacked"), [("gz", gzip.decompress), ("zst", unpacked_frames)])
def test_outputs_are_packed_as_their_names_say(
    cli: Cli, tmp_path: Path, ending: str, unpacked: Callable[[bytes], bytes]
) -> None:
    """Verdicts and bad records in a .gz or .zst file are what a plain file has."""
    lines = write_lines(tmp_path / "pages.jsonl", [page(1), b"hello", page(1)])
    plain, packed = ([tmp_path / f"{name}.jsonl{dot}" for name in ("verdicts", "errors")] for dot in ("", f".{ending}"))
    for verdicts, errors in (plain, packed):
        assert cli("filter", lines, "-o", verdicts, "--errors", errors).code == 3
    assert [unpacked(file.read_bytes()) for file in packed] == [file.read_bytes() for file in plain]


@pytest.mark.parametrize(
    "command",
    [
        ["pairs", "pages.jsonl", "pairs.jsonl", "-o", "nowhere/o.jsonl"],
        ["idf", "build", "pages.jsonl", "-o", "nowhere/o.tsv"],
        ["groups", "--state", "state", "-o", "nowhere/o.jsonl"],
        ["corrections", "--state", "state", "--export", "earlier.jsonl", "--pages", "nowhere/o.jsonl"],
        ["backfill", "pages.jsonl", "--bootstrap", "localhost:1", "--errors", "nowhere/o.jsonl"],
    ],
)
def test_an_output_in_no_folder_is_refused_before_anything_is_read(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """Whatever the command would write; another output stays as it was."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "earlier.jsonl").write_text("earlier\n", encoding="utf-8")
    write_lines(tmp_path / "pages.jsonl", [page(1)])
    assert cli("filter", "pages.jsonl", "--state", "state", "-q").code == 0
    ran = cli(*command)
    assert (ran.code, "there is no such folder" in ran.err) == (2, True), ran.err
    assert (tmp_path / "earlier.jsonl").read_text() == "earlier\n"
