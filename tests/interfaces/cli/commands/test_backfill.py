"""`backfill` refuses what it cannot do before it asks a broker, and reads on where it was."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest

from dedup_service.interfaces.cli.commands.backfill import _Counts, _end_of, _Files
from dedup_service.interfaces.cli.support.page_stream import PreparedBatch
from dedup_service.interfaces.cli.support.stop_signals import Interrupt
from dedup_service.runtime.kafka.backfill.backfill import (
    Backfill,
    BackfillItem,
    BackfillOutputs,
    FileChangedError,
)
from dedup_service.runtime.kafka.backfill.progress import digest_of
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.readers.record import Mark, Record
from dedup_service.runtime.readers.several import open_sources
from tests.interfaces.cli.running import Cli, article, page, write_lines


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "Missing argument"),
        (("{file}",), "no broker is named"),
        (("{file}", "--bootstrap", "localhost:1", "--name", "a/b"), "cannot name a backfill"),
        (("{file}", "--bootstrap", "localhost:1", "--share", "0"), "--share"),
        (("{file}", "--bootstrap", "localhost:1", "--rate", "0"), "--rate"),
        (("{file}", "{file}", "--bootstrap", "localhost:1"), "named twice"),
        (("missing*.jsonl", "--bootstrap", "localhost:1"), "no file or folder matches"),
        (("{file}", "--bootstrap", "localhost:1", "--errors", "{file}"), "the same file"),
    ],
)
def test_what_cannot_be_done_is_refused(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    """With exit code 2 and a line that says what; the input stays as it is."""
    file = write_lines(tmp_path / "pages.jsonl", [page(1, article(1))])
    before = file.read_bytes()
    ran = cli("backfill", *(argument.format(file=file) for argument in arguments))
    assert (ran.code, says in ran.err) == (2, True), ran.err
    assert file.read_bytes() == before


def records_of(file: Path | str) -> list[Record]:
    """Return the records of a file."""
    with open_sources([str(file)]) as source:
        return [record for record in source.records if record is not None]


def after(file: Path | str, done: Sequence[Record]) -> Backfill:
    """Return a backfill that has written these records of a file, all of them bad."""
    backfill = Backfill(Connection("nowhere:1"), Topics(), "a", BackfillOutputs.NONE, "space")
    for record in done:
        item = BackfillItem(str(file), record.number, digest_of(record.identity), None, ends=_end_of(record))
        backfill._progress.note(backfill._files_after([item])[str(file)])
    return backfill


def read_on(file: Path | str, backfill: Backfill) -> tuple[list[bytes], int]:
    """Return the records that are left of a file, and how many the command says were done before."""
    mark, counts = backfill.mark(str(file)), _Counts()
    marks = {} if mark is None else {str(file): mark}
    with Interrupt() as interrupt, open_sources([str(file)], after=marks) as source:
        files = _Files([str(file)], source.name, backfill, counts, lambda _: None, marks, published=False)
        return [record.raw for record in files.left(source.records, interrupt) if record is not None], counts.already


@pytest.mark.parametrize("ending", ["jsonl", "warc"])
def test_records_are_counted_once_wherever_reading_begins(tmp_path: Path, ending: str) -> None:
    """Those that are done, and those that are left; blank lines are no records."""
    file = tmp_path / f"pages.{ending}"
    file.write_bytes(b"{}\n\n{}\n{}\n\n{}\n" if ending == "jsonl" else archive(b"one", b"two", b"three", b"four"))
    records = records_of(file)
    assert len(records) == 4
    for done in range(5):
        left = [record.raw for record in records[done:]]
        assert read_on(file, after(file, records[:done])) == (left, done)


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_shorter_file_under_the_same_name_is_refused(tmp_path: Path, left: int) -> None:
    """Its records may be other ones; nothing would be added, and nothing said."""
    file = tmp_path / "pages.jsonl"
    file.write_bytes(b'{"a": 1}\n{"a": 2}\n{"a": 3}\n')
    backfill = after(file, records_of(file))
    file.write_bytes(b'{"a": 1}\n{"a": 2}\n'[: 9 * left])
    with pytest.raises(FileChangedError, match="Give another --name"):
        read_on(file, backfill)


WHOLE = b'{"url": "urn:1"}\n{"url": "urn:2"}\n{"url": "urn:3"}\n'


def test_half_a_line_is_not_done(tmp_path: Path) -> None:
    """Whoever writes the file is within it; the next run reads the whole line."""
    file = tmp_path / "pages.jsonl"
    file.write_bytes(WHOLE[:25])
    half = records_of(file)[1]
    files = _Files([str(file)], str(file), after(file, ()), _Counts(), lambda _: None, {}, published=False)
    assert files.items(PreparedBatch((half,), [], [(half, "not JSON")], 0.0), {id(half)}) == []


def test_a_last_line_that_gets_its_end_later_is_the_same(tmp_path: Path) -> None:
    """So a file may grow behind a line that had no end when it was read."""
    file = tmp_path / "pages.jsonl"
    file.write_bytes(WHOLE[:33])
    backfill = after(file, records_of(file))
    file.write_bytes(WHOLE)
    assert read_on(file, backfill) == ([WHOLE[34:]], 2)


def site(folder: Path, *names: str) -> Path:
    """Write a folder of HTML files, with a link and what is no HTML."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"<p>{name}")
    (folder / "c.html").symlink_to("a.html")
    (folder / "a.txt").touch()
    return folder


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_folder_is_read_on_at_the_last_file_that_is_done(tmp_path: Path, scheme: str) -> None:
    """Files before it are listed and not read: another content of theirs is not noticed, another number of them is."""
    folder = site(tmp_path / "site", "a.html", "a/b.html", "a/c/d.html", "e.html", "f/g.html")
    name = f"{scheme}{folder}"
    records = records_of(name)
    assert len(records) == 6
    for done in range(len(records) + 1):
        backfill = after(name, records[:done])
        assert backfill.mark(name) == (Mark(done - 1, done - 1) if done else None)
        assert read_on(name, backfill) == ([record.raw for record in records[done:]], done)
    backfill = after(name, records[:4])
    (folder / "a" / "b.html").write_text("another one")
    assert read_on(name, backfill) == ([record.raw for record in records[4:]], 4)
    (folder / "a" / "bb.html").touch()
    with pytest.raises(FileChangedError, match="the file has changed"):
        read_on(name, backfill)


def test_another_archive_in_the_place_of_one_is_not_read_on(tmp_path: Path) -> None:
    """Also if no record begins where the last one began that is done: the next one would be taken for a new one."""
    file = tmp_path / "pages.warc.gz"
    file.write_bytes(b"".join(gzip.compress(archive(body)) for body in (b"one", b"two", b"three", b"four")))
    backfill = after(file, records_of(file)[:2])
    file.write_bytes(b"".join(gzip.compress(archive(b"another %d" % number * 5)) for number in range(9)))
    with pytest.raises(FileChangedError, match="the file has changed"):
        read_on(file, backfill)


def archive(*bodies: bytes) -> bytes:
    """Return a WARC file of responses."""
    return b"".join(
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/%d\r\n"
        b"WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-%012d>\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n"
        b"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"
        % (number, number, len(response), response)
        for number, response in enumerate(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + one for one in bodies)
    )
