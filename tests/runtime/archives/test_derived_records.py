"""Records for captures that are left out: whatever is in them, they are read back as they were meant."""

import gzip
import io
import random

import pytest
from warcio.archiveiterator import ArchiveIterator

from dedup_service.core.verdict import Distance, Verdict, VerdictKind
from dedup_service.runtime.archives.derived_records import metadata_record, revisit_record
from dedup_service.runtime.archives.kept_payloads import KeptPayloads, Original
from dedup_service.runtime.archives.visit import read_visit
from tests.interfaces.cli.test_revisits import FIRST, PAGE, Capture

CHUNKED = Capture("https://b.example/", PAGE, 2, chunked=True)
FACE = "\N{GRINNING FACE}".encode()
ODD = (b"\r\n", b"\n ", b"\x00", b"\xff\xfe", FACE, b"\xc2\x85", b"\xe2\x80\xa8", b"WARC-Type: x\r\n")
VERDICT = Verdict(
    sequence=7,
    id="\ud800\r\nX: y",
    url="u",
    kind=VerdictKind.DUPLICATE,
    space="s",
    duplicate_of="a\r\n\r\nWARC/1.0",
    duplicate_of_url="b\u2028c\ud801",
    distance=Distance(words=3),
    reason="r\nq",
)


def mutated(source: random.Random) -> bytes:
    """Return a record with some bytes changed, inserted or removed; some are compressed."""
    record = bytearray(source.choice((FIRST, CHUNKED)).record())
    for _ in range(source.randrange(6)):
        place, change = source.randrange(len(record)), source.randrange(3)
        if change == 0:
            record[place] = source.randrange(256)
        elif change == 1:
            record[place:place] = source.choice(ODD)
        else:
            del record[place : place + source.randrange(1, 9)]
    return gzip.compress(record) if source.random() < 0.3 else bytes(record)


@pytest.mark.parametrize("seed", range(4))
def test_records_of_hostile_captures_are_read_back(seed: int) -> None:
    """Each is one record, with each header once, and the HTTP headers of the visit are those bytes."""
    source, readable = random.Random(seed), 0
    for _ in range(150):
        visit = read_visit(mutated(source))
        if visit is None:
            continue
        readable += 1
        original = Original(visit.uri, visit.date or FIRST.date, visit.record_id, "sha1:x")
        made = metadata_record(visit, VERDICT, 1) + revisit_record(visit, original, 2)
        records = ArchiveIterator(io.BytesIO(made), no_record_parse=True)
        read = [(one.rec_type, [name for name, _ in one.rec_headers.headers], one.raw_stream.read()) for one in records]
        assert [kind for kind, _, _ in read] == ["metadata", "revisit"]
        assert all(len(names) == len(set(names)) for _, names, _ in read)
        assert read[1][2] == visit.http_head
        assert read[0][2].count(b"\r\n") == read[0][2].count(b"\n") == 7
    assert readable > 50


def test_records_depend_on_what_they_say_alone() -> None:
    """The same capture gives the same bytes, at another place of the archive another id."""
    visit = read_visit(FIRST.record())
    assert visit is not None
    original = Original(FIRST.url, FIRST.date, FIRST.record_id, "sha1:x")
    again = [revisit_record(visit, original, number) for number in (1, 1, 2)]
    assert again[0] == again[1] != again[2]


def test_the_first_capture_of_a_payload_is_its_original() -> None:
    """A capture without a date cannot be referred to, and is none."""
    payloads = KeptPayloads()
    first, second = (read_visit(Capture(f"https://{host}.example/", PAGE, 3).record()) for host in "ab")
    undated = read_visit(FIRST.record().replace(FIRST.date.encode(), b"yesterday"))
    assert first is not None
    assert second is not None
    assert undated is not None
    assert first.payload == second.payload
    assert undated.payload is not None
    payloads.add(undated)
    assert payloads.find(undated.payload) is None
    payloads.add(first)
    payloads.add(second)
    found = payloads.find(undated.payload)
    assert found is not None
    assert found.uri == first.uri
    payloads.close()


def test_what_was_made_of_a_capture_has_no_payload_to_revisit() -> None:
    """A conversion (the text of a page) was not captured; it is written in full, or described."""
    visit = read_visit(FIRST._replace(kind="conversion").record())
    assert visit is not None
    assert (visit.uri, visit.payload) == (FIRST.url, None)


@pytest.mark.parametrize("raw", [b"", b"WARC/1.0\r\n", b"\x1f\x8b\x08", b"{}", FIRST.record()[:40]])
def test_bytes_that_are_no_record_are_no_capture(raw: bytes) -> None:
    """Nothing is raised: the page passed the reader, and its record is then written as it is."""
    assert read_visit(raw) is None
