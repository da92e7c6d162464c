"""Several inputs as one stream."""

import json
import pickle
from pathlib import Path

import pytest

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.runtime.readers.record import NamedRecord
from dedup_service.runtime.readers.several import open_sources


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
