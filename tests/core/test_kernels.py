"""Tests for compiled loops, with and without a writable folder for the machine code."""

from collections.abc import Callable

import pytest

from dedup_service.core.kernels import kernel

SOURCE = "def doubled(x):\n    return 2 * x\n"


def function_from(file: str) -> Callable[[int], int]:
    """Return a function that claims to be defined in `file`."""
    names: dict[str, Callable[[int], int]] = {}
    exec(compile(SOURCE, file, "exec"), names)
    return names["doubled"]


def test_a_loop_is_compiled_without_a_writable_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """If neither the source's folder nor the user's cache is writable, nothing fails."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/cache")
    monkeypatch.setenv("HOME", "/dev/null")
    assert kernel(function_from("/dev/null/nowhere/loops.py"))(21) == 42


def test_the_compiled_function_keeps_its_name() -> None:
    """Tracebacks and profiles show the name of the loop."""
    assert kernel(function_from(__file__)).__name__ == "doubled"
