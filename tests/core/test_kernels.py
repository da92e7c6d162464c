"""Compiled loops, with and without a folder to keep the machine code in."""

from collections.abc import Callable

import pytest

from dedup_service.core.kernels import kernel

SOURCE = "def doubled(x):\n    return 2 * x\n"


def function_from(file: str) -> Callable[[int], int]:
    """A function that claims to stand in `file`."""
    names: dict[str, Callable[[int], int]] = {}
    exec(compile(SOURCE, file, "exec"), names)
    return names["doubled"]


def test_without_a_folder_to_write_a_loop_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the folder of the source nor the user's cache can be written: slower to start, never a failure."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/cache")
    monkeypatch.setenv("HOME", "/dev/null")
    assert kernel(function_from("/dev/null/nowhere/loops.py"))(21) == 42


def test_the_compiled_function_keeps_its_name() -> None:
    """Tracebacks and profiles show the loop under its own name."""
    assert kernel(function_from(__file__)).__name__ == "doubled"
