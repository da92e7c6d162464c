"""Bad records are reported, counted and set aside; the stream continues."""

import base64
import json
from pathlib import Path

import pytest

from tests.interfaces.cli.running import Cli, page, write_lines

BAD_LINES = {
    "does not parse": b'{"url": "https://news.example/1"',
    "not JSON": b"hello",
    "lacks url": b'{"id": "p1", "text": "words"}',
    "empty url": b'{"url": " ", "text": "words"}',
    "url of wrong type": b'{"url": 5, "text": "words"}',
    "text of wrong type": b'{"url": "https://news.example/1", "text": ["words"]}',
    "id of wrong type": b'{"url": "https://news.example/1", "id": [7], "text": "words"}',
    "keywords of wrong type": b'{"url": "https://news.example/1", "text": "words", "keywords": "news"}',
    "not an object": b'["https://news.example/1"]',
    "null": b"null",
    "not UTF-8": '{"url": "https://news.example/1", "text": "新闻"}'.encode("gb18030"),
    "nested beyond reason": b'{"url": "https://news.example/1", "more": ' + b"[" * 100_000,
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_reported_and_the_stream_continues(cli: Cli, tmp_path: Path, line: bytes) -> None:
    """Stderr and the errors file name line 2; lines 1 and 3 have verdicts; the exit code is 3."""
    path, errors = write_lines(tmp_path / "pages.jsonl", [page(1), line, page(3)]), tmp_path / "errors.jsonl"
    ran = cli("filter", path, "--errors", errors, "--quiet")
    assert ran.code == 3
    assert [verdict["id"] for verdict in ran.lines] == ["p1", "p3"]
    assert f"{path}: line 2: " in ran.err
    (reported,) = (json.loads(entry) for entry in errors.read_text().splitlines())
    assert (reported["line"], reported["source"]) == (2, str(path))
    assert reported["error"] in ran.err
    raw = reported["raw"].encode() if reported["raw"] is not None else base64.b64decode(reported["raw_base64"])
    assert raw == line[:1000]
    assert reported["raw_cut"] == (len(line) > 1000)


def test_what_a_damaged_archive_says_does_not_reach_the_terminal(cli: Cli, tmp_path: Path) -> None:
    """Of its bytes, those that a terminal acts on are shown as pictures."""
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>words</p>"
    head = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Target-URI: http://a.example/1\r\n"
    head += b"WARC-Date: 2026-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n"
    record = head + b"Content-Length: %d\r\n\r\n" % len(http) + http + b"\r\n\r\n"
    archive = tmp_path / "pages.warc"
    archive.write_bytes(record + b"BAD\x1b[2J\x07\r\n\r\n" + record)
    ran = cli("filter", archive)
    assert ran.code == 3
    assert "\x1b[2J" not in ran.err
    assert "␛[2J␇" in ran.err


def test_bad_lines_are_counted_and_not_kept(cli: Cli, tmp_path: Path) -> None:
    """The summary counts them; --kept has only pages."""
    path, kept = write_lines(tmp_path / "pages.jsonl", [b"hello", page(1), b"{}"]), tmp_path / "kept.jsonl"
    ran = cli("filter", path, "--kept", kept, "--json")
    assert json.loads(ran.err.splitlines()[-1])["bad_records"] == 2
    assert kept.read_bytes().count(b"\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("key", ["text", "html"])
def test_a_page_of_50_mb_is_kept_undecided(cli: Cli, tmp_path: Path, key: str) -> None:
    """It is passed on with the reason, and the next page is decided."""
    large = {"url": "https://news.example/large", "id": "large", key: "<p>news " * (50 * 2**20 // 8)}
    ran = cli("filter", write_lines(tmp_path / "pages.jsonl", [large, page(1)]))
    assert ran.code == 0
    assert [verdict["verdict"] for verdict in ran.lines] == ["undecided", "unique"]
    assert "too large" in ran.lines[0]["reason"]


def test_a_full_disk_stops_cleanly(cli: Cli, tmp_path: Path) -> None:
    """Exit code 1, and one line that says what to do."""
    path = write_lines(tmp_path / "pages.jsonl", [page(1)])
    ran = cli("filter", path, "--output", "/dev/full")
    assert ran.code == 1
    assert ran.err.startswith("twinsieve: /dev/full: No space left on device")
    assert "run the same command again" in ran.err
