"""Min-hash keys, read back. That they are the smallest of each part is tested in the crate."""

import pytest

from dedup_service.core.evidence.keys import LEVELS, PARTS, unpacked_keys
from tests.made_evidence import prepared_text


def test_each_part_has_its_keys_in_order() -> None:
    """Of a page as long as most all keys are there; of one that is too short none."""
    keys = unpacked_keys(prepared_text("".join(map(chr, range(0x4E00, 0x5200)))).keys, LEVELS)
    assert [len(part) for part in keys] == [LEVELS] * PARTS
    assert all(list(part) == sorted(set(part)) and part[0] > 0 for part in keys)
    assert unpacked_keys(prepared_text("abc").keys, LEVELS) == [(0,) * LEVELS] * PARTS


@pytest.mark.parametrize("packed", [b"", b"\1", bytes(31), b"\1" * (4 * PARTS * LEVELS - 1), b"\1" * 4 * PARTS])
def test_other_bytes_have_no_keys(packed: bytes) -> None:
    """Bytes of another length, as of another number of levels, read as a page without keys."""
    assert unpacked_keys(packed, LEVELS) == [(0,) * LEVELS] * PARTS
