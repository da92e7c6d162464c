"""Compile numeric loops with numba, and keep their machine code.

`kernel` and `long_kernel` compile a function that Python calls. numba writes the machine code beside the
source (`__pycache__`) or, if that folder is not writable, to the user's cache folder; `NUMBA_CACHE_DIR`
overrides both. If no folder is writable, the loops are compiled in every process: the start is slower, but
nothing fails.

`kernel_inline` marks a step of a kernel: it is compiled into every kernel that calls it, and Python never
calls it. Without inlining, each step would count references to every array that it is given, which costs
more than the step (measured: probes take 1.5 to 2.2 times as long). Inlined steps would still count them, since numba
finds only some of the pairs that cancel out; so they are compiled without (an insertion into the block index: 180 → 52
ns). A step that makes arrays is a `kernel_inline_allocating`. Only kernels are cached on disk, with
their steps and the constants of these inside. numba compares the file of a kernel alone; here its cache is also of no
use when a step, a kernel or a constant that it reaches was another one, in whatever file. Otherwise a checkout that is
updated would go on with steps that read memory as the code before wrote it.

`prefetch` is an instruction that no operator of Python stands for.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast, get_args, get_origin

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.options import DefaultOptions
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

_COUNTED: dict[str, Any] = {"_nrt": True} if hasattr(DefaultOptions, "_nrt") else {}
_UNCOUNTED: dict[str, Any] = dict.fromkeys(_COUNTED, False)
"""The option of numba that leaves out the counting of references; one that is not documented.

A function without it gets that of the function for which it is compiled first.
"""

_DEFINED: list[Any] = []
"""The kernels that were defined in this process."""


def kernel(function: F) -> F:
    """Return `function` compiled by numba, cached on disk if a folder is writable.

    The function keeps the interpreter lock. A loop of microseconds that releases it can wait up to 5 ms to
    get it back while other threads compute.
    """
    return _compiled(function, nogil=False)


def long_kernel(function: F) -> F:
    """Return `function` compiled like a `kernel`, but without the interpreter lock.

    For loops over all entries, which may take seconds, and for those over a batch of pages. Other threads run
    meanwhile.
    """
    return _compiled(function, nogil=True)


def _compiled(function: F, *, nogil: bool) -> F:
    try:
        compiled = numba.njit(cache=True, nogil=nogil, **_COUNTED)(function)
    except RuntimeError:  # numba's "no locator available": no folder is writable
        compiled = numba.njit(nogil=nogil, **_COUNTED)(function)
    else:
        _stamp_with_steps(compiled)
    _DEFINED.append(compiled)
    return cast("F", compiled)


def cache_files() -> list[str | None]:
    """Return, of each kernel that is defined in this process, the file that lists its machine code.

    It is there once the kernel was compiled. None for a kernel without one: no folder is writable, or a numba that
    keeps its cache in another way.
    """
    caches = [getattr(compiled, "_cache", None) for compiled in _DEFINED]
    return [getattr(getattr(one, "_cache_file", None), "_index_path", None) for one in caches]


def _stamp_with_steps(compiled: Any) -> None:
    """Let cached code count as outdated when anything that the kernel reaches was another one.

    When the kernel is called first, all of that is defined. Sets a private attribute of numba, and replaces a method of
    the kernel's cache; a numba without them goes on by the files of kernels alone.
    """
    code_cache: Any = getattr(compiled, "_cache", None)
    file: Any = getattr(code_cache, "_cache_file", None)
    if not hasattr(file, "_source_stamp"):
        return
    stamp, load = file._source_stamp, code_cache.load_overload  # noqa: SLF001

    def load_overload(signature: Any, target_context: Any) -> Any:
        file._source_stamp = (stamp, reached_digest(compiled.py_func))  # noqa: SLF001
        return load(signature, target_context)

    code_cache.load_overload = load_overload


def reached_digest(function: FunctionType) -> str:
    """Return a digest of the code of a function, and of all kernels, steps and constants that it reaches."""
    digest, seen, left = hashlib.blake2b(digest_size=16), {function}, [function]
    while left:
        for part in _parts(left.pop()):
            if isinstance(part, bytes):
                digest.update(part)
            elif part not in seen:
                seen.add(part)
                left.append(part)
    return digest.hexdigest()


@cache
def _parts(function: FunctionType) -> tuple["bytes | FunctionType", ...]:
    """Return what a function consists of: its code and constants as bytes, and the functions that it calls."""
    parts: list[bytes | FunctionType] = []
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [value for value in code.co_consts if isinstance(value, CodeType)]
        parts.append(code.co_code + repr([value for value in code.co_consts if _is_plain(value)]).encode())
        closure = {} if code is not function.__code__ else _closure(function)
        for name in (*code.co_names, *closure):
            value = closure.get(name, function.__globals__.get(name))
            step = getattr(value, "py_func", getattr(value, "_defn", value))  # of a kernel or step; of an intrinsic
            if isinstance(step, FunctionType):
                parts += [step, repr(getattr(value, "targetoptions", None)).encode()]
            elif isinstance(value, np.ndarray):
                parts.append(name.encode() + value.tobytes())
            elif _is_plain(value):
                parts.append(f"{name}={value!r}".encode())
    return tuple(parts)


def _closure(function: FunctionType) -> dict[str, Any]:
    """Return the values that a function has from the function around it, by name."""
    return {
        name: cell.cell_contents
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    }


def _is_plain(value: object) -> bool:
    """Whether `repr` says all of a constant, and the same in each process."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, int | float | str | bytes | np.generic)


def kernel_inline(function: F) -> F:
    """Return `function` as a step of kernels, inlined into each kernel that calls it.

    It counts no references. So it may not make an array, which numba refuses when it compiles, nor return one, which is
    refused here with TypeError, as is a call of a step that does. Views of what it was given are allowed.
    """
    steps = [getattr(function.__globals__.get(name), "py_func", None) for name in function.__code__.co_names]
    for one in [function, *filter(None, steps)]:
        if _has_array(one.__annotations__.get("return")):
            raise TypeError(f"{function.__qualname__} gets an array from {one.__qualname__}: kernel_inline_allocating")
    return cast("F", numba.njit(nogil=True, forceinline=True, **_UNCOUNTED)(function))


def kernel_inline_allocating(function: F) -> F:
    """Return `function` as a step like those of `kernel_inline`, which may make and return arrays."""
    return cast("F", numba.njit(nogil=True, forceinline=True, **_COUNTED)(function))


def _has_array(annotation: Any) -> bool:
    """Whether what a function returns is an array, or a tuple with one."""
    return get_origin(annotation) is np.ndarray or any(map(_has_array, get_args(annotation)))


def _prefetch(_typing: Any, array: Any, _index: Any) -> Any:
    """Declare the type `prefetch(array, int64)` and emit its code: for reading, into all levels of cache."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(view.data, [arguments[1]]), cgutils.voidptr_t)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        instruction = builder.module.declare_intrinsic("llvm.prefetch.p0", (), kind)
        builder.call(instruction, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), emit


prefetch = cast("Callable[[npt.NDArray[Any], int], None]", intrinsic(_prefetch))
"""Fetch the cache line of array[index]; the index may lie outside the array. Callable from kernels only.

Asks memory for entries before they are needed, so that the buckets of one probe arrive together instead of
one after the other.
"""
