"""What is erased is zeros in every file, and stays so."""

from pathlib import Path

import numpy as np
import pytest

from .pages import SEGMENT_ROWS, assert_equal, assert_opened_again, filled, pages
from .test_compaction import compact_beside, sparse


def test_an_erasure_reaches_the_files_that_compaction_replaced(tmp_path: Path) -> None:
    """They stay until the next commit; the row is in none of them after the erasure."""
    store, oracle = sparse(tmp_path)
    compact_beside(store)
    for number in (0, 64):
        secret = oracle.rows[number].evidence
        assert secret in b"".join(path.read_bytes() for path in tmp_path.iterdir())
        store.erase(number)
        oracle.rows[number].erase()
        assert secret not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert_equal(store, oracle)
    store.close()
    assert_opened_again(tmp_path, oracle)


@pytest.mark.parametrize("committed", [True, False])
def test_an_erasure_leaves_zeros_on_the_disk(tmp_path: Path, committed: bool) -> None:
    """Evidence, names and text are zeros in every file; all other rows are as before, now and after opening."""
    store, oracle = filled(tmp_path, 200)
    if committed:
        store.commit(1, "")
    for number in (0, 63, 64, 150, 199):
        secret = oracle.rows[number]
        store.erase(number)
        everything = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert len(secret.evidence) < 8 or secret.evidence not in everything
        assert secret.names is not None
        assert secret.names.url.encode() not in everything
        assert secret.text is None or secret.text not in everything
        secret.erase()
        assert_equal(store, oracle)
    batch = pages(9, 20)
    oracle.append(store.append(batch.entries, batch.names, batch.texts), batch)
    store.commit(2, "")
    store.close()
    assert_opened_again(tmp_path, oracle)


def test_an_erasure_is_durable_before_the_next_commit(tmp_path: Path) -> None:
    """The manifest's own checksums change with it, also of the block that later rows continued."""
    store, oracle = filled(tmp_path, 100)
    store.commit(1, "")
    store.append(pages(2, 50).entries)
    store.erase(99)
    oracle.rows[99].erase()
    store.close()
    assert_opened_again(tmp_path, oracle)


def test_an_erasure_ends_a_compaction_that_has_copied_the_row(tmp_path: Path) -> None:
    """No copy of the bytes is left."""
    store, oracle = filled(tmp_path, 2 * SEGMENT_ROWS)
    gone = np.arange(20, SEGMENT_ROWS, dtype=np.uint32)
    store.remove(gone)
    oracle.remove(gone)
    store.commit(1, "")
    assert store.compact(1)
    secret = oracle.rows[1].evidence
    store.erase(1)
    oracle.rows[1].erase()
    assert secret not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    while store.compact(1 << 20):
        pass
    assert_equal(store, oracle)
    store.close()
