"""What people are told before loops are compiled, by the files of the cache."""

from pathlib import Path

from dedup_service.core.kernels import cache_files
from dedup_service.runtime.first_use import COMPILING, compile_notice


def test_an_empty_cache_is_announced_and_a_filled_one_is_not(tmp_path: Path) -> None:
    """The notice is there while most files are missing, and ends when they are there."""
    files = [str(tmp_path / f"{number}.nbi") for number in range(10)]
    assert compile_notice(files) == COMPILING
    for name in files[:3]:
        Path(name).touch()
    assert compile_notice(files) == COMPILING
    for name in files[3:6]:
        Path(name).touch()
    assert compile_notice(files) is None


def test_a_cache_that_cannot_be_kept_is_announced_at_each_start() -> None:
    """Without a writable folder each start compiles, and the notice says how to change that."""
    assert "NUMBA_CACHE_DIR" in (compile_notice([None, None]) or "")


def test_each_kernel_has_its_file() -> None:
    """The kernels that are defined by now are listed, with the files that numba writes."""
    files = cache_files()
    assert len(files) > 50
    assert all(file is None or file.endswith(".nbi") for file in files)
