"""Several inputs as one stream."""

import glob
import json
import pickle
from pathlib import Path

import pytest

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.runtime.readers.record import NamedRecord
from dedup_service.runtime.readers.several import open_sources, pattern_of


@pytest.mark.parametrize("middle", ["middle.jsonl", "middle.jsonl.gz", "middle.warc", "middle"])
def test_an_input_that_is_gone_costs_its_own_pages_only(tmp_path: Path, middle: str) -> None:
    """It is a bad record by its name, and the inputs behind it are read."""
    names = [str(tmp_path / name) for name in ("first.jsonl", middle, "last.jsonl")]
    for name in (names[0], names[2]):
        Path(name).write_text(json.dumps({"url": "https://a.example/", "text": name}) + "\n", encoding="utf-8")
    gone = Path(names[1])
    if gone.suffix:
        gone.write_bytes(b"")
    else:
        gone.mkdir()
    with open_sources(names) as source:
        records = (record for record in source.records if isinstance(record, NamedRecord))
        found = [next(records)]
        gone.rename(tmp_path / "elsewhere")
        found += records
    assert [record.source for record in found] == names
    broken = pickle.loads(pickle.dumps(found[1]))
    assert (broken.place, broken.raw, broken.number) == ("record 1", b"", 1)
    for read in (lambda: broken.page(lambda *_: Extraction()), broken.unread):
        with pytest.raises(RecordError, match="cannot be read from here on: "):
            read()


PATTERNS = (
    *("*", "**", "*.jsonl", "**/*", "**/*.jsonl", "a/*", "a/**", "*/*", "**/a/*", "**/a/**/b*", "a/**/**/*.jsonl"),
    *("./*", ".*", "**/.*", "[ab]*", "a/../*", "?.jsonl", "link/*", "**/link/*", "a/[b].jsonl", "x*", "a", "a/b.jsonl"),
    *("here/*", "here/a/*.jsonl", "a/.h/*", "*/.h/**"),
)
PATHS = ("b.jsonl", "a/b.jsonl", "a/a/b.jsonl", "a/c.txt", "a/.h/b.jsonl", ".b.jsonl", "link/b.jsonl", "a/a/a/a.jsonl")


@pytest.mark.parametrize("path", PATHS)
def test_a_pattern_stands_for_a_file_that_is_not_there_yet(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as it is there, `glob` finds it by that pattern, under whatever name; a name stands for itself alone."""
    (tmp_path / "a" / "a" / "a").mkdir(parents=True)
    (tmp_path / "a" / ".h").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("other")
    monkeypatch.chdir(tmp_path)
    patterns = [pattern.replace("here", str(tmp_path)) for pattern in PATTERNS]
    said = [pattern_of([pattern], path) is not None for pattern in patterns]
    by_address = pattern_of([f"file://{tmp_path}/**/*.jsonl", "-", "https://a.example/*"], path)
    Path(path).touch()
    found = [
        bool(glob.has_magic(pattern)) and any(map(Path(path).samefile, glob.glob(pattern, recursive=True)))  # noqa: PTH207 - the oracle
        for pattern in patterns
    ]
    assert dict(zip(patterns, said, strict=True)) == dict(zip(patterns, found, strict=True))
    assert (by_address is None) == ("/." in f"/{path}" or path.endswith(".txt"))


def test_a_folder_of_a_table_stands_for_its_parts(tmp_path: Path) -> None:
    """And for no other file in it."""
    folder = tmp_path / "rows.parquet"
    folder.mkdir()
    for name in (str(folder), f"{tmp_path}/*.parquet"):
        assert pattern_of([name], str(folder / "out.parquet")) == name
        assert pattern_of([name], str(folder / "out.jsonl")) is None
