"""Tests for compiled loops, with and without a writable folder for the machine code."""

import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from numba.core.errors import TypingError

from dedup_service.core.kernels import kernel, kernel_inline, kernel_inline_allocating

Numbers = npt.NDArray[np.int64]

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


STEPS = """
from dedup_service.core.kernels import kernel_inline
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from limits import LIMIT, MORE

@kernel_inline
def bounded(x):
    return plus(min(x, LIMIT))

def emitter(more):
    def emit(_context, builder, _signature, arguments):
        return builder.add(arguments[0], ir.Constant(ir.IntType(64), more))
    return emit

@intrinsic
def plus(_typing, _number):
    return types.int64(types.int64), emitter(MORE)
"""
LOOPS = """
import sys
from dedup_service.core.kernels import kernel

@kernel
def loop(x):
    return double(bounded(x))

@kernel
def double(x):
    return 2 * x

from steps import bounded

print(loop(100), sum(loop.stats.cache_hits.values()))
"""


def test_machine_code_is_outdated_when_what_it_was_made_of_is_another_one(tmp_path: Path) -> None:
    """An update changes steps, their options, intrinsics and constants, and not the files of the kernels with them."""

    def run() -> str:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "NUMBA_CACHE_DIR": ""}
        done = subprocess.run(
            [sys.executable, "loops.py"], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    (tmp_path / "loops.py").write_text(LOOPS)
    (tmp_path / "steps.py").write_text(STEPS)
    (tmp_path / "limits.py").write_text("LIMIT, MORE = 7, 0\n")
    assert [run(), run()] == ["14 0", "14 1"]
    (tmp_path / "limits.py").write_text("LIMIT, MORE = 9, 0\n")
    assert [run(), run()] == ["18 0", "18 1"]
    (tmp_path / "limits.py").write_text("LIMIT, MORE = 9, 1\n")
    assert [run(), run()] == ["20 0", "20 1"]
    (tmp_path / "steps.py").write_text(STEPS.replace("builder.add", "builder.sub"))
    assert [run(), run()] == ["16 0", "16 1"]
    (tmp_path / "steps.py").write_text(STEPS.replace("min(x, LIMIT)", "max(x, LIMIT)"))
    assert [run(), run()] == ["202 0", "202 1"]
    counted = STEPS.replace("min(x, LIMIT)", "max(x, LIMIT)").replace("kernel_inline", "kernel_inline_allocating")
    (tmp_path / "steps.py").write_text(counted)
    assert [run(), run()] == ["202 0", "202 1"]


def _doubled(numbers: Numbers) -> Numbers:
    return numbers * 2


_doubled_step = kernel_inline_allocating(_doubled)


def _sum_of_doubled(numbers: Numbers) -> int:
    return int(_doubled_step(numbers)[0])


def _pair(numbers: Numbers) -> tuple[int, Numbers]:
    return 1, numbers


def _first_of_new(numbers: Numbers) -> int:
    return int(np.zeros(1, np.int64)[0] + numbers[0])


@pytest.mark.parametrize("step", [_doubled, _sum_of_doubled, _pair])
def test_a_step_that_gets_an_array_must_say_so(step: Callable[[Numbers], object]) -> None:
    """Steps count no references: nobody would free an array that one gets, and its caller would free it too often."""
    with pytest.raises(TypeError, match=r"gets an array from \w+: kernel_inline_allocating"):
        kernel_inline(step)


def test_a_step_that_makes_an_array_is_not_compiled() -> None:
    """The memory of an array is counted."""
    step = kernel_inline(_first_of_new)
    whole = kernel(function_calling(step))
    with pytest.raises(TypingError, match="Only accept returning of array passed into the function"):
        whole(np.ones(1, np.int64))


def test_steps_leave_the_references_of_arrays_as_they_were() -> None:
    """An array that went through a step as a view is freed when Python lets it go, and not before."""
    whole = kernel(function_calling(kernel_inline(_last_of_view)))
    numbers = np.arange(100_000)
    held = sys.getrefcount(numbers)
    assert [whole(numbers) for _ in range(100)] == [99_999] * 100
    assert sys.getrefcount(numbers) == held
    gone = weakref.ref(numbers)
    del numbers
    assert gone() is None


def _last_of_view(numbers: Numbers) -> int:
    later = numbers[1:]
    return int(later[len(later) - 1])


def function_calling(step: Callable[[Numbers], int]) -> Callable[[Numbers], int]:
    """Return a function that only calls a step."""

    def whole(numbers: Numbers) -> int:
        return step(numbers)

    return whole
