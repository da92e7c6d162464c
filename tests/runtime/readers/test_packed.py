"""Packed lines."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.readers.open import open_source
from dedup_service.runtime.readers.packed import created, unpacked
from dedup_service.runtime.readers.record import BrokenInput, Record


def lines_of(path: Path) -> list[Record]:
    with open_source(str(path)) as source:
        return [record for record in source.records if record is not None]


def content_of(packed: bytes, size: int) -> bytes:
    """Return what is in packed bytes that come in chunks of this size, each behind a wait."""
    chunks = (chunk for start in range(0, len(packed), size) for chunk in (None, packed[start : start + size]))
    return b"".join(chunk for chunk in unpacked(chunks) if chunk is not None)


@given(
    st.lists(st.binary(max_size=300), min_size=1, max_size=5),
    st.integers(1, 50),
    st.sampled_from([gzip.compress, zstandard.compress]),
)
def test_frames_are_one_stream(parts: list[bytes], size: int, pack: Callable[[bytes], bytes]) -> None:
    """Whatever is read at once, the content is that of all members or frames, also of empty ones."""
    packed = b"".join(map(pack, parts))
    assert content_of(packed, size) == b"".join(parts)


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@pytest.mark.parametrize("lines", [(), (b"one\n", b"two\n")])
def test_what_is_created_is_packed_as_its_name_says(tmp_path: Path, ending: str, lines: tuple[bytes, ...]) -> None:
    """It can be read, whatever was there before, and also if nothing is written."""
    path = tmp_path / f"lines{ending}"
    path.write_bytes(b"earlier\n")
    with created(str(path)) as file:
        for line in lines:
            file.write(line)
    assert content_of(path.read_bytes(), 100) == b"".join(lines)
    assert ending == "" or path.stat().st_size > 0
    with created(str(path), append=True) as file:
        file.write(b"more\n")
    assert content_of(path.read_bytes(), 100) == b"".join((*lines, b"more\n"))


def test_a_frame_of_unknown_length_and_a_large_window_is_read(tmp_path: Path) -> None:
    """As `zstd --long=31` packs what it reads from a pipe."""
    line = b'{"url": "https://a.example/", "text": "a text"}\n'
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(packer.compress(line * 1000) + packer.flush())
    assert [record.raw for record in lines_of(path)] == [line] * 1000


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor(write_checksum=True).compress])
@pytest.mark.parametrize("damage", ["truncated", "corrupt", "garbage behind"])
def test_a_damaged_file_ends_with_a_bad_record(tmp_path: Path, damage: str, pack: Callable[[bytes], bytes]) -> None:
    """Lines before the damage are read, and nothing raises."""
    lines = b"".join(b'{"url": "https://a.example/%d", "text": "%d"}\n' % (one, one**9) for one in range(20_000))
    packed = pack(lines)
    middle = len(packed) // 2
    content = {
        "truncated": packed[:middle],
        "corrupt": packed[:middle]
        + bytes(byte ^ 0xFF for byte in packed[middle : middle + 50])
        + packed[middle + 50 :],
        "garbage behind": packed + b"garbage",
    }[damage]
    path = tmp_path / "a.jsonl"  # whatever its name is
    path.write_bytes(content)
    *whole, last = lines_of(path)
    assert isinstance(last, BrokenInput)
    assert last.place == f"line {len(whole) + 1}"
    assert len(whole) > 100
    if damage != "corrupt" or pack is not gzip.compress:  # gzip may say so late
        assert b"".join(record.raw for record in whole) == lines[: sum(len(record.raw) for record in whole)]
