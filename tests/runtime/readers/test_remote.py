"""Inputs at addresses: the same records as of the files."""

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from aiohttp import ClientTimeout
from fsspec import filesystem

from dedup_service.core.errors import ConfigurationError, RecordError
from dedup_service.runtime.addresses import AddressUnreachableError
from dedup_service.runtime.readers.open import open_source
from dedup_service.runtime.readers.record import NamedRecord, Record
from dedup_service.runtime.readers.several import expanded, open_sources
from tests.runtime.readers.samples import KINDS, write_sample
from tests.s3_server import put


def upload(server: str, path: Path) -> None:
    """Put a file, or all files of a folder, into the bucket `crawl`."""
    put(f"{server}/crawl")
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file():
            put(f"{server}/crawl/{file.relative_to(path.parent)}", file.read_bytes())


def what(record: Record | None) -> tuple[int, str, bytes, object]:
    assert record is not None
    return record.number, record.place, record.raw, record.mark


@pytest.mark.slow
def test_all_kinds_are_read_from_object_storage(tmp_path: Path, s3: str) -> None:
    """Records, places and marks are those of the same files on a disk, from the start and from the middle."""
    for kind in KINDS:
        path = write_sample(tmp_path, kind)
        upload(s3, path)
        address = f"s3://crawl/{path.name}"
        with open_source(str(path)) as local, open_source(address) as remote:
            records = [record for record in local.records if record is not None]
            assert [what(record) for record in remote.records] == [what(record) for record in records]
            assert (remote.kind, remote.size_bytes) == (local.kind, local.size_bytes)
        middle = len(records) // 2
        with open_source(address, after=records[middle].mark) as remote:
            assert [what(one) for one in remote.records] == [what(one) for one in records[middle + 1 :]]
    parts = [f"s3://crawl/pages.{kind}" for kind in ("jsonl", "jsonl.gz", "jsonl.zst")]
    assert expanded(["s3://crawl/*.jsonl*"]) == parts
    with pytest.raises(ConfigurationError, match=r"no file or folder matches 's3://crawl/\*\.none'"):
        expanded(["s3://crawl/*.none"])
    with (
        pytest.raises(ConfigurationError, match=r"there is nothing at s3://crawl/none\.jsonl"),
        open_source("s3://crawl/none.jsonl"),
    ):
        pass
    with open_sources(parts) as source:
        records = [next(source.records)]  # type: ignore[list-item]
        filesystem("s3").rm("crawl/pages.jsonl.gz")
        records += [record for record in source.records if record is not None]
    bad = [record for record in records if isinstance(record, NamedRecord) and record.source == parts[1]]
    assert [(record.place, record.raw) for record in bad] == [("record 1", b"")]
    with pytest.raises(RecordError, match="the input cannot be read from here on"):
        bad[0].unread()
    assert [record for record in records if isinstance(record, NamedRecord) and record.source == parts[2]]


def test_addresses_of_files_are_read(tmp_path: Path) -> None:
    """Any storage that fsspec knows is read, its folders too."""
    for kind in ("jsonl.gz", "parquet", "warc.gz", "folder"):
        path = write_sample(tmp_path, kind)
        with open_source(str(path)) as local, open_source(f"file://{path}") as remote:
            assert [what(record) for record in remote.records] == [what(record) for record in local.records]


def test_a_folder_of_parts_is_read_in_their_order(tmp_path: Path) -> None:
    """As Spark writes tables: `pages.parquet/part-….parquet`, beside files that are none."""
    folder = tmp_path / "table.parquet"
    folder.mkdir()
    write_sample(folder, "parquet").rename(folder / "part-2.parquet")
    write_sample(folder, "parquet").rename(folder / "part-1.parquet")
    (folder / "_SUCCESS").touch()
    parts = [str(folder / "part-1.parquet"), str(folder / "part-2.parquet")]
    assert expanded([str(folder)]) == parts
    assert expanded([f"file://{folder}"]) == parts


@pytest.mark.parametrize("kind", ["jsonl.gz", "warc.gz"])
def test_a_file_of_a_web_server_may_take_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The limit on a whole request, which is too long ago at once here, is not used."""
    monkeypatch.setattr("aiohttp.client.DEFAULT_TIMEOUT", ClientTimeout(total=1e-9))
    path = write_sample(tmp_path, kind)
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, ThreadPoolExecutor(1) as thread:
        thread.submit(server.serve_forever)
        try:
            address = f"http://127.0.0.1:{server.server_port}/{path.name}"
            with open_source(str(path)) as local, open_source(address) as remote:
                assert [what(record) for record in remote.records] == [what(record) for record in local.records]
        finally:
            server.shutdown()


def test_an_address_that_does_not_answer_is_an_error_of_one_line() -> None:
    """It is named, with what to check."""
    with (
        pytest.raises(AddressUnreachableError, match=r"127\.0\.0\.1:9/a.jsonl cannot be read.*check the address"),
        open_source("http://127.0.0.1:9/a.jsonl"),
    ):
        pass


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is imported for an address alone."""
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'twinsieve\[s3\]'"):
        expanded(["s3://crawl/*.jsonl"])
