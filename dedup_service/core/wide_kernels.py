"""Comparisons of one page with 64 rows at a time, for loops that compare many pages with many rows.

LLVM vectorises a loop as it sees fit: results go to memory as bytes, and a second loop has to look for those that are
set. Here the vectors are written down (64 bytes each, which LLVM cuts into what the processor has), and 64 results are
one word. That makes the comparison with a window twice as fast (docs/adr/0024). Callable from kernels only; nothing is
checked, and 64 rows are read whatever their number is.
"""

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

WIDE = 64
"""Rows of a mask."""

MAX_BLOCK_RADIUS = 3
"""Bits in which two words differ at most that have one of four blocks in common for certain."""

COMPARED_BYTES = 256
"""Bytes that `bits_apart` compares: those of a sketch."""

SIEVE_PLANES = 16
"""Bytes that `similar_rows` compares; each has a plane of its own, in which those of all rows are together."""

_VECTOR_BYTES = 64
_BYTE, _WORD, _INT = ir.IntType(8), ir.IntType(64), ir.IntType(32)
_BYTES = ir.VectorType(_BYTE, _VECTOR_BYTES)


def _splat(builder: Any, value: Any, lanes: int) -> Any:
    """Return a vector with the same value in all lanes."""
    vector = ir.VectorType(value.type, lanes)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(_INT, 0))
    return builder.shuffle_vector(
        first, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(_INT, lanes), None)
    )


def _loaded(builder: Any, address: Any, offset: int, kind: Any) -> Any:
    """Load a vector from any address."""
    at = builder.add(address, ir.Constant(_WORD, offset))
    loaded = builder.load(builder.inttoptr(at, kind.as_pointer()))
    loaded.align = 1
    return loaded


def _mask(builder: Any, masks: list[tuple[Any, int]]) -> Any:
    """Return vectors of truth values as the bits of a word, one behind the other."""
    word, shift = ir.Constant(_WORD, 0), 0
    for mask, lanes in masks:
        bits = builder.zext(builder.bitcast(mask, ir.IntType(lanes)), _WORD)
        word, shift = builder.or_(word, builder.shl(bits, ir.Constant(_WORD, shift))), shift + lanes
    return word


def _function(builder: Any, name: str, kind: Any) -> Any:
    """Return a function of LLVM."""
    return cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]


def _popcounts(builder: Any, vector: Any) -> Any:
    """Return how many bits of each lane are set."""
    kind = vector.type
    name = f"llvm.ctpop.v{kind.count}i{kind.element.width}"
    return builder.call(_function(builder, name, ir.FunctionType(kind, [kind])), [vector])


def _similar_rows(_typing: Any, _planes: Any, _stride: Any, _sieve: Any, _most: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        planes, stride, sieve, most = arguments
        limit = _splat(builder, builder.trunc(most, _BYTE), _VECTOR_BYTES)
        sums: list[Any] = [ir.Constant(_BYTES, None)] * (WIDE // _VECTOR_BYTES)
        for plane in range(SIEVE_PLANES):
            one = builder.load(builder.inttoptr(builder.add(sieve, ir.Constant(_WORD, plane)), _BYTE.as_pointer()))
            page = _splat(builder, one, _VECTOR_BYTES)
            start = builder.add(planes, builder.mul(stride, ir.Constant(_WORD, plane)))
            for part in range(len(sums)):
                rows = _loaded(builder, start, part * _VECTOR_BYTES, _BYTES)
                sums[part] = builder.add(sums[part], _popcounts(builder, builder.xor(rows, page)))
        return _mask(builder, [(builder.icmp_unsigned("<=", one, limit), _VECTOR_BYTES) for one in sums])

    return types.uint64(types.int64, types.int64, types.int64, types.int64), emit


def _bits_apart(_typing: Any, _one: Any, _other: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        words = ir.VectorType(_WORD, _VECTOR_BYTES // 8)
        total: Any = ir.Constant(words, None)
        for part in range(0, COMPARED_BYTES, _VECTOR_BYTES):
            one, other = (_loaded(builder, address, part, words) for address in arguments)
            total = builder.add(total, _popcounts(builder, builder.xor(one, other)))
        name = f"llvm.vector.reduce.add.v{words.count}i64"
        return builder.call(_function(builder, name, ir.FunctionType(_WORD, [words])), [total])

    return types.int64(types.int64, types.int64), emit


def _near_rows(_typing: Any, _values: Any, _value: Any, _most: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        values, value, most = arguments
        lanes = _VECTOR_BYTES // 8
        one, limit = _splat(builder, value, lanes), _splat(builder, most, lanes)
        masks = []
        for group in range(WIDE // lanes):
            rows = _loaded(builder, values, group * _VECTOR_BYTES, ir.VectorType(_WORD, lanes))
            masks.append((builder.icmp_unsigned("<=", _popcounts(builder, builder.xor(rows, one)), limit), lanes))
        return _mask(builder, masks)

    return types.uint64(types.int64, types.uint64, types.int64), emit


def _rows_with_equal_block(_typing: Any, _values: Any, _value: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        values, value = arguments
        lanes = _VECTOR_BYTES // 2
        blocks = ir.VectorType(ir.IntType(16), lanes)
        one = builder.bitcast(_splat(builder, value, _VECTOR_BYTES // 8), blocks)
        any_equal = ir.Constant(ir.VectorType(ir.IntType(1), lanes), None)
        for group in range(WIDE * 8 // _VECTOR_BYTES):
            rows = _loaded(builder, values, group * _VECTOR_BYTES, blocks)
            any_equal = builder.or_(any_equal, builder.icmp_unsigned("==", rows, one))
        return builder.icmp_unsigned(
            "!=", builder.bitcast(any_equal, ir.IntType(lanes)), ir.Constant(ir.IntType(lanes), 0)
        )

    return types.boolean(types.int64, types.uint64), emit


def _lowest_bit(_typing: Any, _word: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), emit


similar_rows = cast("Callable[[int, int, int, int], Any]", intrinsic(_similar_rows))
"""Return the rows of which at most so many of 128 bits differ from those of a page: a word with a bit for each row.

Arguments: address of the first of SIEVE_PLANES bytes of the first row, bytes from there to its next one, address of the
page's bytes, which are together, and how many bits may differ.
"""

bits_apart = cast("Callable[[int, int], int]", intrinsic(_bits_apart))
"""Return how many bits differ in COMPARED_BYTES bytes at two addresses."""

near_rows = cast("Callable[[int, Any, int], Any]", intrinsic(_near_rows))
"""Return the same of 64 words, from an address on, and a word, of which at most so many bits differ."""

rows_with_equal_block = cast("Callable[[int, Any], bool]", intrinsic(_rows_with_equal_block))
"""Return whether any of 64 words, from an address on, has one of the four 16-bit blocks of a word in its place.

Only such a row can differ from it in MAX_BLOCK_RADIUS bits or fewer.
"""

lowest_bit = cast("Callable[[Any], int]", intrinsic(_lowest_bit))
"""Return the number of the lowest bit that is set in a word, which is not 0."""
