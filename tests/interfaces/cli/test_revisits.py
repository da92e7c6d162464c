"""`filter --kept FILE.warc.gz --revisits`: archives that say what they left out, read back with warcio."""

import base64
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.cli import main as warcio

from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from tests.interfaces.cli.running import Cli

STORY = (
    "The council opened the new bridge over the river on Monday morning after two years of work, and the ferry that "
    "had carried people and their bicycles for ninety years made its last crossing in the evening. "
)
OTHER = (
    "A museum in the harbour shows the engine of an icebreaker which was built in 1911, repaired four times, and "
    "raised from the bottom of a fjord by volunteers who had learned to dive for that purpose. "
)
PROFILE_1_1 = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"


class Capture(NamedTuple):
    """A response to write. seconds: of its date. chunked: store its body in chunks. stated: its WARC-Payload-Digest."""

    url: str
    body: bytes
    seconds: int
    chunked: bool = False
    stated: str | None = None
    more: str = ""
    kind: str = "response"

    @property
    def record_id(self) -> str:
        return f"<urn:uuid:00000000-0000-0000-0000-{self.seconds:012}>"

    @property
    def date(self) -> str:
        return f"2026-01-02T03:04:{self.seconds:02}Z"

    @property
    def head(self) -> bytes:
        coding = "Transfer-Encoding: chunked\r\n" if self.chunked else ""
        return f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Visit:  {self.seconds}\r\n{coding}\r\n".encode()

    def record(self) -> bytes:
        body = self.body
        if self.chunked:
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:7], body[7:])) + b"0\r\n\r\n"
        block = body if self.kind == "resource" else self.head + body
        media_type = "text/html" if self.kind == "resource" else "application/http; msgtype=response"
        stated = f"WARC-Payload-Digest: {self.stated}\r\n" if self.stated else ""
        head = (
            f"WARC/1.0\r\nWARC-Type: {self.kind}\r\nWARC-Record-ID: {self.record_id}\r\nWARC-Date: {self.date}\r\n"
            f"WARC-Target-URI: {self.url}\r\nWARC-IP-Address: 192.0.2.7\r\nContent-Type: {media_type}\r\n"
            f"{stated}{self.more}Content-Length: {len(block)}\r\n\r\n"
        )
        return head.encode() + block + b"\r\n\r\n"


def html(text: str, title: str = "News") -> bytes:
    return f"<html><head><title>{title}</title></head><body><article><p>{text}</p></article></body></html>".encode()


def sha1(body: bytes) -> str:
    return f"sha1:{base64.b32encode(hashlib.sha1(body).digest()).decode()}"


PAGE, COPY = html(STORY * 3), html(STORY * 3, title="The same in another template")
FIRST = Capture("https://a.example/bridge", PAGE, 1, stated=sha1(PAGE))


def write(path: Path, captures: list[Capture], *, packed: bool = True) -> Path:
    records = [capture.record() for capture in captures]
    path.write_bytes(b"".join(gzip.compress(record) if packed else record for record in records))
    return path


def records_of(archive: Path) -> list[tuple[str, dict[str, str], bytes]]:
    """Return (type, headers, block) of each record, and check that warcio finds all digests right."""
    with pytest.raises(SystemExit) as ended:
        warcio(["check", str(archive)])
    assert not ended.value.code
    with archive.open("rb") as stream:
        records = ArchiveIterator(stream, no_record_parse=True)
        return [(one.rec_type, dict(one.rec_headers.headers), one.raw_stream.read()) for one in records]


def index_of(archive: Path) -> list[tuple[str, str, dict[str, Any]]]:
    lines = archive.with_name(archive.name.replace(".warc.gz", ".cdxj")).read_text().splitlines()
    assert lines == sorted(lines)
    return [(key, date, json.loads(rest)) for key, date, rest in (line.split(" ", 2) for line in lines)]


def filtered(cli: Cli, tmp_path: Path, captures: list[Capture], *more: str, packed: bool = True) -> Path:
    source = write(tmp_path / f"crawl.warc{'.gz' * packed}", captures, packed=packed)
    kept = tmp_path / "kept.warc.gz"
    ran = cli("filter", source, "-q", "-o", tmp_path / "v.jsonl", "--kept", kept, "--revisits", *more)
    assert (ran.code, ran.err) == (ExitCode.DONE, "")
    return kept


@pytest.mark.parametrize("packed", [False, True])
def test_an_equal_payload_is_a_revisit_and_another_duplicate_is_metadata(
    cli: Cli, tmp_path: Path, packed: bool
) -> None:
    """The kept record is as it was read; the revisit has the visit's HTTP headers, and says where the payload is."""
    mirror, copy = Capture("https://b.example/bridge", PAGE, 2), Capture("https://c.example/bridge", COPY, 3)
    captures = [FIRST, mirror, copy, Capture("https://a.example/museum", html(OTHER * 3), 4)]
    kept = filtered(cli, tmp_path, captures, packed=packed)
    full, revisit, metadata, last = records_of(kept)
    assert gzip.decompress(kept.read_bytes()).startswith(FIRST.record())
    ran = cli("filter", tmp_path / f"crawl.warc{'.gz' * packed}", "--kept", kept, "--revisits", "--json")
    assert json.loads(ran.err)["archive"] == {"full": 2, "revisit": 1, "metadata": 1}
    assert [one[0] for one in (full, revisit, metadata, last)] == ["response", "revisit", "metadata", "response"]
    assert revisit[1] == {
        "WARC-Type": "revisit",
        "WARC-Target-URI": mirror.url,
        "WARC-Date": mirror.date,
        "WARC-Record-ID": revisit[1]["WARC-Record-ID"],
        "WARC-IP-Address": "192.0.2.7",
        "WARC-Profile": PROFILE_1_1,
        "WARC-Refers-To": FIRST.record_id,
        "WARC-Refers-To-Target-URI": FIRST.url,
        "WARC-Refers-To-Date": FIRST.date,
        "WARC-Payload-Digest": sha1(PAGE),
        "WARC-Block-Digest": sha1(mirror.head),
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(mirror.head)),
    }
    assert revisit[2] == mirror.head
    assert (metadata[1]["WARC-Target-URI"], metadata[1]["WARC-Refers-To"]) == (copy.url, copy.record_id)
    assert metadata[1]["Content-Type"] == "application/warc-fields"
    said = dict(line.split(": ", 1) for line in metadata[2].decode().splitlines())
    assert (said["verdict"], said["duplicate-of"], said["duplicate-of-id"]) == ("duplicate", FIRST.url, FIRST.record_id)
    assert {"distance-words", "distance-body", "score", "rule", "space"} <= said.keys()


def test_the_index_is_sorted_and_has_every_capture(cli: Cli, tmp_path: Path) -> None:
    """One line for each response and revisit, at its place in the archive; metadata has none."""
    names = ("zoo", "bridge", "alpha")
    captures = [Capture(f"https://{name}.example/{number}", PAGE, number) for number, name in enumerate(names, 1)]
    captures.append(Capture("https://c.example/bridge", COPY, 9))
    kept = filtered(cli, tmp_path, captures)
    index = index_of(kept)
    assert [key for key, _, _ in index] == ["example,alpha)/3", "example,bridge)/2", "example,zoo)/1"]
    assert [entry["mime"] for _, _, entry in index] == ["warc/revisit", "warc/revisit", "text/html"]
    assert {entry["digest"] for _, _, entry in index} == {sha1(PAGE)}
    assert {entry["filename"] for _, _, entry in index} == {kept.name}
    data = kept.read_bytes()
    for _, _, entry in index:
        offset, length = int(entry["offset"]), int(entry["length"])
        assert entry["url"].encode() in gzip.decompress(data[offset : offset + length])


def test_a_digest_that_a_record_states_is_not_believed(cli: Cli, tmp_path: Path) -> None:
    """Two pages that state one digest are two pages: else the second would be lost."""
    liar = Capture("https://a.example/museum", html(OTHER * 3), 2, stated=FIRST.stated)
    kept = tmp_path / "kept.warc.gz"
    source = write(tmp_path / "crawl.warc.gz", [FIRST, liar])
    assert cli("filter", source, "-q", "--kept", kept, "--revisits").code == ExitCode.DONE
    with kept.open("rb") as stream:
        assert [record.rec_type for record in ArchiveIterator(stream)] == ["response", "response"]


@pytest.mark.parametrize(
    ("first", "second", "kinds"),
    [
        ({"chunked": True}, {"chunked": True}, ["response", "revisit"]),
        ({"chunked": True}, {}, ["response", "metadata"]),
        ({}, {"chunked": True}, ["response", "metadata"]),
        ({"kind": "resource"}, {"kind": "resource"}, ["resource", "revisit"]),
        ({"kind": "resource"}, {}, ["resource", "metadata"]),
        ({}, {"more": "WARC-Truncated: length\r\n"}, ["response", "metadata"]),
        ({"more": "WARC-Truncated: length\r\n"}, {}, ["response", "metadata"]),
    ],
)
def test_payloads_are_compared_as_they_are_replayed(
    cli: Cli, tmp_path: Path, first: dict[str, Any], second: dict[str, Any], kinds: list[str]
) -> None:
    """A revisit is replayed with its own headers, so both say the same of chunks; what was cut off is no payload."""
    captures = [Capture("https://a.example/1", PAGE, 1, **first), Capture("https://b.example/2", PAGE, 2, **second)]
    records = records_of(filtered(cli, tmp_path, captures))
    assert [kind for kind, _, _ in records] == kinds
    if kinds[0] == "resource" and kinds[1] == "revisit":
        assert records[1][2] == b""
        assert "Content-Type" not in records[1][1]


def test_a_further_visit_with_the_same_payload_is_a_revisit(cli: Cli, tmp_path: Path) -> None:
    """A page that is kept, too; with another payload it is there in full, and later visits refer to either."""
    url, changed = "https://a.example/bridge", html(STORY * 3 + OTHER)
    captures = [Capture(url, body, number) for number, body in enumerate((PAGE, PAGE, changed, changed, PAGE), 1)]
    kept = filtered(cli, tmp_path, captures)
    kinds = [json.loads(line)["verdict"] for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert kinds == ["unique", "unchanged", "updated", "unchanged", "updated"]
    records = records_of(kept)
    assert [kind for kind, _, _ in records] == ["response", "revisit", "response", "revisit", "revisit"]
    refers = [headers.get("WARC-Refers-To-Date") for _, headers, _ in records]
    assert refers == [None, captures[0].date, None, captures[2].date, captures[0].date]


def test_a_run_that_is_repeated_writes_the_same_archive(cli: Cli, tmp_path: Path) -> None:
    """Each record of a file gets its earlier verdict, and record ids and dates do not depend on the run."""
    hosts = [Capture(f"https://{number}.example/", (PAGE, COPY)[number % 2], number) for number in range(4)]
    captures = [*hosts, hosts[0], hosts[1], hosts[1]]
    runs, state = [], ("--state", str(tmp_path / "state"))
    kept = filtered(cli, tmp_path, captures, *state, packed=False)
    archive = tmp_path / "crawl.warc"
    for _ in range(2):
        cli("filter", archive, "-q", "-o", tmp_path / "v.jsonl", "--kept", kept, "--revisits", *state)
        runs.append((kept.read_bytes(), index_of(kept)))
        assert len({headers["WARC-Record-ID"] for _, headers, _ in records_of(kept)}) == len(captures)
    assert runs[0] == runs[1]


def test_an_archive_of_what_is_new_describes_the_rest(cli: Cli, tmp_path: Path) -> None:
    """With --kept-verdicts, a further visit of an earlier archive's page is metadata, with its verdict."""
    state = ("--state", str(tmp_path / "state"))
    filtered(cli, tmp_path, [FIRST], *state)
    again, other = Capture(FIRST.url, PAGE, 2), Capture("https://a.example/museum", html(OTHER * 3), 3)
    kept = filtered(cli, tmp_path, [again, other], *state, "--kept-verdicts", "unique,updated")
    [(first, _, block), (second, _, _)] = records_of(kept)
    assert (first, b"verdict: unchanged" in block, second) == ("metadata", True, "response")


def test_an_archive_refers_to_what_it_has_itself(cli: Cli, tmp_path: Path) -> None:
    """A page that an earlier archive has is no original of this one: its copy is described, not replayed."""
    state = ("--state", str(tmp_path / "state"))
    filtered(cli, tmp_path, [FIRST], *state)
    kept = filtered(cli, tmp_path, [Capture("https://b.example/bridge", PAGE, 2)], *state)
    [(kind, _, block)] = records_of(kept)
    assert (kind, b"duplicate-of: https://a.example/bridge" in block) == ("metadata", True)


def test_hostile_headers_make_no_further_headers(cli: Cli, tmp_path: Path) -> None:
    """A folded header, letters outside ASCII, a date that is none: the archive is still read back and indexed."""
    odd = Capture("https://b.example/ü\r\n  WARC-Type:x", PAGE, 2)
    undated = Capture("https://c.example/", COPY, 3)
    fresh = Capture("https://d.example/", html(OTHER * 3), 4)
    source = tmp_path / "crawl.warc.gz"
    pieces = [FIRST.record(), odd.record()]
    pieces += [one.record().replace(one.date.encode(), b"yesterday") for one in (undated, fresh)]
    source.write_bytes(b"".join(map(gzip.compress, pieces)))
    kept = tmp_path / "kept.warc.gz"
    ran = cli("filter", source, "-q", "--kept", kept, "--revisits")
    records = records_of(kept)
    assert [kind for kind, _, _ in records] == ["response", "revisit", "metadata", "response"]
    assert records[2][1]["WARC-Date"] == "1970-01-01T00:00:00Z"
    assert len(index_of(kept)) == 2
    assert "not in the index, for lack of a date: 1" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--revisits",), "--revisits is for an archive of kept pages: give --kept"),
        (("--revisits", "--kept", "kept.warc"), "ends in .warc.gz"),
        (("--revisits", "--kept", ".warc.gz"), "ends in .warc.gz"),
        (("--revisits", "--kept", "kept.warc.gz", "-o", "kept.cdxj"), "--output and --revisits are the same file"),
    ],
)
def test_wrong_usage(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    """Nothing is written, and the message says what to give."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "crawl.warc.gz", [FIRST])
    ran = cli("filter", "crawl.warc.gz", *arguments)
    assert (ran.code, message in ran.err) == (ExitCode.USAGE, True), ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["crawl.warc.gz"]


def test_inputs_of_another_kind_are_refused(cli: Cli, tmp_path: Path) -> None:
    """Only WARC records can be left out by name."""
    (tmp_path / "pages.jsonl").write_text('{"url": "https://a.example/", "text": "x"}\n')
    kept = tmp_path / "kept.warc.gz"
    ran = cli("filter", tmp_path / "pages.jsonl", "--kept", kept, "--revisits")
    assert (ran.code, "--revisits is for WARC inputs" in ran.err) == (ExitCode.USAGE, True)
    assert not kept.exists()
