"""Reading behind any record of an input gives what is behind it."""

from pathlib import Path

import pytest

from dedup_service.core.errors import RecordError
from dedup_service.runtime.readers.open import open_source
from dedup_service.runtime.readers.record import BrokenInput, Extract, NamedRecord, Record
from dedup_service.runtime.readers.several import open_sources
from tests.runtime.readers.samples import KINDS, PAGES, write_sample


def what(record: Record | None) -> tuple[int, str, bytes, bytes]:
    """Return what is known of a record."""
    assert record is not None
    return record.number, record.place, record.raw, record.identity


def found(record: Record | None, extract: Extract) -> str:
    """Return the text of the page of a record, or why it has none."""
    assert record is not None
    try:
        return record.page(extract).text
    except RecordError as error:
        return f"bad: {error}"


@pytest.mark.parametrize("kind", KINDS)
def test_behind_each_record_is_the_rest(tmp_path: Path, kind: str, extract_html: Extract) -> None:
    """The records are the same to the byte, with their numbers and places, and nothing is skipped or read twice."""
    path = str(write_sample(tmp_path, kind))
    with open_source(path) as source:
        records = [record for record in source.records if record is not None]
    assert sum(not found(record, extract_html).startswith("bad: ") for record in records) == len(PAGES)
    for at, record in enumerate(records):
        with open_source(path, after=record.mark) as source:
            rest = [one for one in source.records if one is not None]
        assert [what(one) for one in rest] == [what(one) for one in records[at + 1 :]]


def test_several_inputs_go_on_in_the_middle_of_one(tmp_path: Path) -> None:
    """Inputs before it are not read, those behind it are, and paths of folders begin with the same names."""
    names = [str(write_sample(tmp_path, kind)) for kind in KINDS]
    with open_sources(names) as source:
        records = [record for record in source.records if record is not None]
    for at in range(0, len(records), 5):
        record = records[at]
        place = names.index(getattr(record, "source"))  # noqa: B009 - of NamedRecord
        with open_sources(names, first=place, after={names[place]: record.mark}) as source:
            rest = [one for one in source.records if one is not None]
        assert [what(one) for one in rest] == [what(one) for one in records[at + 1 :]]


def test_each_of_several_inputs_begins_behind_its_own_mark(tmp_path: Path) -> None:
    """Those without a mark are read whole."""
    names = [str(write_sample(tmp_path, kind)) for kind in KINDS]
    with open_sources(names) as source:
        records = [record for record in source.records if isinstance(record, NamedRecord)]
    marks = {name: next(one for one in records if one.source == name).mark for name in names[::2]}
    with open_sources(names, after=marks) as source:
        rest = [one for one in source.records if one is not None]
    wanted = [one for one in records if one.source not in marks or one.number > marks[one.source].number]
    assert list(map(what, rest)) == list(map(what, wanted))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "folder"])
def test_progress_is_counted_in_bytes_of_the_files(tmp_path: Path, kind: str) -> None:
    """It never goes back, and ends at the size of the input, packed or not."""
    names = [str(write_sample(folder, kind)) for folder in (tmp_path / "a", tmp_path / "b") if not folder.mkdir()]
    with open_sources(names) as source:
        seen = [source.read_bytes() for _ in source.records]
        end = source.read_bytes()
    assert seen == sorted(seen)
    assert end == source.size_bytes == sum(Path(name).stat().st_size for name in names)


def test_a_wet_record_is_its_text(tmp_path: Path, extract_html: Extract) -> None:
    """The text is that of the record, and its names are those of the headers."""
    with open_source(str(write_sample(tmp_path, "wet.gz"))) as source:
        records = [record for record in source.records if record is not None]
    pages = [record.page(extract_html) for record in records if not isinstance(record, BrokenInput)]
    assert [(page.url, page.text) for page in pages] == [(page["url"], page["text"]) for page in PAGES]
    assert pages[0].id == "<urn:x:p1>"
