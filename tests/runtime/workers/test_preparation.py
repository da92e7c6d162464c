"""Records are prepared in any process, and one that kills its worker affects no other."""

import gzip
import json
import multiprocessing
import os
import resource
import sys
import threading
import zlib
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, replace

import pytest

from dedup_service.core.extraction import extract
from dedup_service.core.page import Page, PreparedPage
from dedup_service.runtime.readers.jsonlines import SMALL_BYTES, JsonLine
from dedup_service.runtime.readers.record import Extract, Record
from dedup_service.runtime.readers.warc import WarcRecord
from dedup_service.runtime.resources import SpaceOptions
from dedup_service.runtime.workers.page_limits import PAGE_MEMORY_MB
from dedup_service.runtime.workers.preparation import (
    MAX_CHARS_TOGETHER,
    BadRecord,
    Preparer,
    prepare_record,
    short_page,
)
from dedup_service.runtime.workers.worker_process import WorkersError
from tests.hangs import HANG_S, wait_until
from tests.runtime.workers.records import EndlessLine, Killer, WorkerRecord, page_of


def line(number: int) -> JsonLine:
    """A page whose text depends on `number`."""
    text = " ".join(f"word{number}x{position}" for position in range(60))
    return JsonLine(number, f'{{"url": "https://a.example/{number}", "text": "{text}"}}'.encode())


def html(number: int) -> JsonLine:
    """A page in HTML, which a process extracts."""
    return JsonLine(number, json.dumps({"url": f"https://a.example/{number}", "html": "<p>a text " * 40}).encode())


@dataclass(frozen=True)
class Gate(WorkerRecord):
    """A short text that says when it is read, and is a page once it may."""

    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def text_page(self) -> Page | None:
        """Wait, and return the page."""
        self.reached.set()
        self.opened.wait(HANG_S)
        return page_of("a text")


@pytest.mark.parametrize("field", ["text", "title", "keywords", "tags", "references"])
def test_only_short_pages_are_prepared_together(field: str) -> None:
    """Nothing limits their time: a page is not short that has a hundred thousand keywords, or a long one."""

    def is_together(value: object) -> bool:
        raw = json.dumps({"url": "https://a.example/", "text": "short"} | {field: value}).encode()
        return short_page(JsonLine(1, raw)) is not None

    long = "a b " * (MAX_CHARS_TOGETHER // 4)
    if field in {"text", "title"}:
        assert (is_together("short"), is_together(long + "c")) == (True, False)
    else:
        assert (is_together(["short"]), is_together([long])) == (True, False)
        assert not is_together([""] * MAX_CHARS_TOGETHER)


@pytest.fixture(scope="module")
def workers() -> Iterator[Preparer]:
    """Two workers, which most tests share; a process that dies is replaced."""
    with Preparer(SpaceOptions(), 2) as preparer:
        yield preparer


@pytest.mark.slow
def test_workers_give_the_answers_of_this_process(workers: Preparer) -> None:
    """Order and content do not depend on who prepares a record: here, in a process, or alone."""
    records = [*map(line, range(1, 40)), JsonLine(40, b"hello"), html(41), line(42)]
    answers = [prepare_record(SpaceOptions(), record) for record in records]
    assert workers.submit(records).result(HANG_S) == answers


def test_short_texts_start_no_process() -> None:
    """A run over texts alone has this process only, and what waits when it is closed ends with WorkersError."""
    gate, before = Gate(), set(multiprocessing.active_children())
    with Preparer(SpaceOptions(), 2) as preparer:
        answers = preparer.submit([*map(line, range(1, 40)), JsonLine(40, b"hello")]).result(HANG_S)
        assert [type(answer) for answer in answers] == [PreparedPage] * 39 + [BadRecord]
        assert preparer.submit([]).result(HANG_S) == []
        held = preparer.submit([gate])
        gate.reached.wait(HANG_S)
        later = preparer.submit([line(1), line(2)])
        assert astuple(preparer.pool_state()) == (2, 0, 0, 2, 0)
        assert set(multiprocessing.active_children()) == before
        thread = threading.Thread(target=preparer.close)
        thread.start()
        wait_until(lambda: preparer._closed)
        gate.opened.set()
        thread.join(HANG_S)
    assert isinstance(held.result(0)[0], PreparedPage)
    assert isinstance(later.exception(0), WorkersError)
    with pytest.raises(WorkersError, match="closed"):
        preparer.submit([line(1)])


@pytest.mark.slow
def test_a_record_that_kills_its_worker_is_kept_with_that_reason(workers: Preparer) -> None:
    """The records around it are prepared."""
    given = workers.submit([line(1), Killer(2), line(3)]).result(HANG_S)
    assert [answer.page.id for answer in given if isinstance(answer, PreparedPage)] == [
        "https://a.example/1",
        "r",
        "https://a.example/3",
    ]
    assert [answer.reason for answer in given if isinstance(answer, PreparedPage)] == [
        None,
        "not judged: the worker process died over this page, twice",
        None,
    ]


class Traced(JsonLine):
    """A line that tells which process read it, as the site that its page names."""

    def page(self, extract: Extract) -> Page:
        """Return the page with the reading process."""
        return replace(super().page(extract), site_name=str(os.getpid()))

    def text_page(self) -> Page | None:
        """Return the page with the reading process, if it is a short text."""
        page = super().text_page()
        return None if page is None else replace(page, site_name=str(os.getpid()))


@pytest.mark.slow
def test_short_texts_are_prepared_here_and_all_else_in_processes(workers: Preparer) -> None:
    """Without a limit is only what takes little: no HTML, no long text, no long line, no thousands of keywords."""
    text, long = "some words of a text " * 20, "some words of a text " * (MAX_CHARS_TOGETHER // 20)
    values: list[dict[str, object]] = [
        {"text": text},
        {"text": text, "html": "<p>ignored"},
        {"text": ""},
        {},
        {"html": f"<p>{text}"},
        {"text": long},
        {"text": text, "tags": ["a"] * MAX_CHARS_TOGETHER},
        {"text": text, "more": "x" * SMALL_BYTES},
    ]
    lines = [
        Traced(number, json.dumps({"url": "https://a.example/"} | value).encode())
        for number, value in enumerate(values)
    ]
    pages = [answer.page for answer in workers.submit(lines).result(HANG_S) if isinstance(answer, PreparedPage)]
    assert [page.site_name == str(os.getpid()) for page in pages] == [True] * 4 + [False] * 4


@dataclass(frozen=True)
class Failing(WorkerRecord):
    """A record that raises `times` times, and then is a page."""

    failed: list[int] = field(default_factory=list)
    times: int = 0
    everywhere: bool = False

    def page(self, extract: Extract) -> Page:
        """Raise an error that nobody expects, or return a page whose text is extracted."""
        text = extract("<p>a text</p>", None).text if not self.everywhere else ""
        self.failed.append(1)
        if (text or self.everywhere) and len(self.failed) <= self.times:
            raise AttributeError("'Decompressor' object has no attribute 'unused_data'")
        return page_of(text)

    def unread(self) -> Page:
        """Return the page without its text, or fail."""
        if self.everywhere:
            raise AttributeError("'Decompressor' object has no attribute 'unused_data'")
        return page_of("")


@pytest.mark.slow
def test_a_page_that_fails_twice_is_undecided_and_never_ends_a_stream(workers: Preparer) -> None:
    """Its reason names the class of the error; one that fails once is prepared; one without an address is bad."""
    records: list[Record] = [
        line(1),
        Failing(2, times=2),
        Failing(3, times=1),
        Failing(4, times=99, everywhere=True),
        line(5),
    ]
    given = workers.submit(records).result(HANG_S)
    reasons = [answer.reason if isinstance(answer, PreparedPage) else answer.problem for answer in given]
    error = "AttributeError: 'Decompressor' object has no attribute 'unused_data'"
    short = "too little text: 5 letters, at least 64 to judge"
    assert reasons == [None, f"not judged: {error}", short, error, None]
    assert [isinstance(answer, BadRecord) for answer in given] == [False, False, False, True, False]


class Unpreparable(WorkerRecord):
    """A record whose page has a language that no reader would give it, so that no fingerprint can be made."""

    def page(self, extract: Extract) -> Page:
        """Return the page."""
        return replace(page_of("一个网页" * 30), lang=7)  # type: ignore[arg-type]


class UnpreparableText(Unpreparable):
    """Such a record that is a short text."""

    def text_page(self) -> Page | None:
        """Return the page."""
        return self.page(extract)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Unpreparable, UnpreparableText])
def test_a_page_that_cannot_be_prepared_leaves_those_beside_it_alone(kind: type[Unpreparable]) -> None:
    """Short texts are prepared together at first, and then each alone; long pages are alone from the start."""
    text = " ".join(f"word{position}" for position in range(3000))
    long_page = JsonLine(4, f'{{"url": "https://a.example/4", "text": "{text}"}}'.encode())
    records: list[Record] = [line(1), kind(2), line(3), long_page]
    with Preparer(SpaceOptions(), keep_text=False) as preparer:
        given = preparer.submit(records).result(HANG_S)
    reasons = [answer.reason for answer in given if isinstance(answer, PreparedPage)]
    assert [reason and reason[:23] for reason in reasons] == [None, "not judged: TypeError: ", None, None]
    assert [answer.page.text for answer in given if isinstance(answer, PreparedPage)] == [""] * 4
    assert given[2:] == answers_without_text([line(3), long_page])


def answers_without_text(records: list[Record]) -> list[PreparedPage | BadRecord]:
    """Prepare `records` in this process, one after the other."""
    return [prepare_record(SpaceOptions(), record, keep_text=False) for record in records]


@dataclass(frozen=True)
class Hungry(WorkerRecord):
    """A record that takes `mib` of memory to become a page, once it is in a worker."""

    mib: int = 0

    def page(self, extract: Extract) -> Page:
        """Fill the memory while the text is extracted, unless this is the process that created the record."""
        wanted = bool(extract("<p>a text</p>", None).text) and os.getpid() != self.parent
        taken = bytearray(self.mib << 20) if wanted else b""
        return page_of(" ".join(f"word{position}" for position in range(60)) if taken else "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_work_on_a_page_is_under_a_limit_of_memory_by_default() -> None:
    """A page beyond it is undecided with the reason; what earlier pages took does not count."""
    records: list[Record] = [Hungry(1, mib=600), Hungry(2, mib=600), Hungry(3, mib=PAGE_MEMORY_MB + 100), line(4)]
    with Preparer(SpaceOptions()) as preparer:
        answers = preparer.submit(records).result(HANG_S)
    reasons = [answer.reason for answer in answers if isinstance(answer, PreparedPage)]
    assert reasons == [None, None, "not judged: MemoryError: needs more memory than a page may use", None]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_record_too_large_to_arrive_is_undecided() -> None:
    """Its worker cannot even unpack it."""
    large = JsonLine(2, b'{"url": "https://a.example/2", "more": "' + b"x" * (72 << 20) + b'", "text": "a text"}')
    with Preparer(SpaceOptions(), memory_mb=50, chunk=1) as preparer:
        first, second, third, hungry = preparer.submit([line(1), large, line(3), Hungry(4, mib=600)]).result(HANG_S)
    assert isinstance(second, PreparedPage)
    assert second.reason == "not judged: needs more memory than a page may use"
    assert isinstance(first, PreparedPage)
    assert isinstance(third, PreparedPage)
    assert (first.reason, third.reason) == (None, None)
    assert isinstance(hungry, PreparedPage)
    assert "MemoryError" in (hungry.reason or "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_native_code_that_gets_no_memory_costs_its_page_alone() -> None:
    """A character that folds to eighteen, two million times: the page is given up at the first try, with the reason."""
    large = JsonLine(2, b'{"url": "https://a.example/2", "text": "' + "\ufdfa".encode() * 2_000_000 + b'"}')
    with Preparer(SpaceOptions(), memory_mb=100) as preparer:
        answers = preparer.submit([line(1), large, line(3)]).result(HANG_S)
    reasons = [answer.reason for answer in answers if isinstance(answer, PreparedPage)]
    assert reasons == [None, "not judged: aborted, as native code does that gets no more memory", None]


def packed(body: bytes, encodings: str) -> WarcRecord:
    """An archived response with this body."""
    http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: {encodings}\r\n\r\n".encode() + body
    head = (
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Target-URI: http://a.example/1\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(http)}\r\n\r\n"
    )
    raw = head.encode() + http + b"\r\n\r\n"
    return WarcRecord(1, 0, len(raw), raw)


@pytest.mark.slow
def test_what_ended_a_worker_is_not_read_again_without_its_limits() -> None:
    """Some KB that decode to 256 MiB of empty members; a list of a million strings. Both pages keep their names."""
    members = gzip.compress(b"", mtime=0) * 50_000
    inner = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = gzip.compress(b"".join(inner.compress(members) for _ in range(2**28 // len(members))) + inner.flush())
    lists = b'{"url": "https://a.example/2", "id": "2", "tags": [%s]}' % b",".join([b'"xy"'] * 1_000_000)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Preparer(SpaceOptions(), timeout_s=1, memory_mb=20, chunk=1) as preparer:
        answers = preparer.submit([packed(bomb, "gzip, gzip, gzip"), JsonLine(2, lists)]).result(HANG_S)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown
    pages = [answer.page for answer in answers if isinstance(answer, PreparedPage)]
    assert [(page.url, page.id) for page in pages] == [
        ("http://a.example/1", "<urn:uuid:1>"),
        ("https://a.example/2", "2"),
    ]
    assert all((page.problem or "").startswith("not judged: ") for page in pages)
    assert grown < 40 << 10  # KiB: the line on its way to the worker; its list takes 60 MB


class Exit(WorkerRecord):
    """A record that ends its thread, if it can."""

    def text_page(self) -> Page | None:
        """Raise what no handler of faults expects."""
        raise SystemExit(3)


def test_whatever_ends_a_batch_ends_its_future() -> None:
    """Nobody waits for good, and the next batch is prepared."""
    with Preparer(SpaceOptions()) as preparer:
        with pytest.raises(SystemExit):
            preparer.submit([line(1), Exit(2)]).result(HANG_S)
        (answer,) = preparer.submit([line(3)]).result(HANG_S)
    assert isinstance(answer, PreparedPage)
    assert answer.reason is None


@pytest.mark.slow
def test_one_process_is_a_worker_with_a_limit_of_time() -> None:
    """The page is undecided, and the stream goes on."""
    with Preparer(SpaceOptions(), 1, timeout_s=0.5) as preparer:
        answers = preparer.submit([line(1), EndlessLine(2), line(3)]).result(HANG_S)
    reasons = [answer.reason for answer in answers if isinstance(answer, PreparedPage)]
    assert reasons == [None, "not judged: took longer than 0.5 s", None]
