"""Thirty-two tags of a quotient table at a time, and elements moved by one place, in vectors.

Tags and values are those of `quotient_segment`. A search for a run passes over some twenty tags, each of which it would
ask the same; here a *block*, 32 tags of 16 bits that begin at a multiple of 32, is one comparison, whose answer is a
word with one bit a tag. LLVM cuts the vectors into what the processor has. Callable from kernels only; nothing is
checked.
"""

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dedup_service.core.kernels import kernel_inline, load16, load32, store16, store32

BLOCK = 32
"""Tags of a block."""

BLOCK_BYTES = 2 * BLOCK

ALL_OF_BLOCK = (1 << BLOCK) - 1
"""The word of a block of which all tags are asked for."""

_WORD, _TAG, _VALUE, _INT = ir.IntType(64), ir.IntType(16), ir.IntType(32), ir.IntType(32)


def _splat(builder: Any, value: Any, kind: Any, lanes: int) -> Any:
    """Return a vector that has the lower bits of a word in all lanes."""
    vector = ir.VectorType(kind, lanes)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), builder.trunc(value, kind), _INT(0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(_INT, lanes), [0] * lanes))


def _pointer(builder: Any, address: Any, offset: int, vector: Any) -> Any:
    return builder.inttoptr(builder.add(address, _WORD(offset)), vector.as_pointer())


def _tags_with(_typing: Any, _address: Any, _bits: Any, _value: Any) -> Any:
    """Declare the type `tags_with(int64, int64, int64) -> int64` and emit its code."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address, bits, value = arguments
        tags = builder.load(_pointer(builder, address, 0, ir.VectorType(_TAG, BLOCK)), align=BLOCK_BYTES)
        asked = builder.and_(tags, _splat(builder, bits, _TAG, BLOCK))
        equal = builder.icmp_unsigned("==", asked, _splat(builder, value, _TAG, BLOCK))
        return builder.zext(builder.bitcast(equal, ir.IntType(BLOCK)), _WORD)

    return types.int64(types.int64, types.int64, types.int64), emit


def _move_tags(lanes: int) -> Callable[..., Any]:
    def declare(_typing: Any, _address: Any, _kept: Any) -> Any:
        """Declare the type `move(int64, int64)` and emit its code."""

        def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            address, kept = arguments
            vector = ir.VectorType(_TAG, lanes)
            target = _pointer(builder, address, 0, vector)
            stay = _splat(builder, kept, _TAG, lanes)
            own = builder.and_(builder.load(target, align=2), stay)
            before = builder.and_(builder.load(_pointer(builder, address, -2, vector), align=2), builder.not_(stay))
            builder.store(builder.or_(own, before), target, align=2)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), emit

    return declare


def _move_values(lanes: int) -> Callable[..., Any]:
    def declare(_typing: Any, _address: Any) -> Any:
        """Declare the type `move(int64)` and emit its code."""

        def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            vector = ir.VectorType(_VALUE, lanes)
            moved = builder.load(_pointer(builder, arguments[0], -4, vector), align=4)
            builder.store(moved, _pointer(builder, arguments[0], 0, vector), align=4)
            return context.get_dummy_value()

        return types.void(types.int64), emit

    return declare


def _first_bit(_typing: Any, _word: Any) -> Any:
    """Declare the type `first_bit(int64) -> int64` and emit its code."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), emit


tags_with = cast("Callable[[int, int, int], int]", intrinsic(_tags_with))
"""Return which tags of a block are `value` in `bits`: tags_with(address, bits, value), bit i for the i-th tag.

The address is a multiple of BLOCK_BYTES.
"""

first_bit = cast("Callable[[int], int]", intrinsic(_first_bit))
"""Return the number of the lowest bit that is set in a word, which is not 0."""

_move_16_tags = cast("Callable[[int, int], None]", intrinsic(_move_tags(16)))
_move_4_tags = cast("Callable[[int, int], None]", intrinsic(_move_tags(4)))
_move_8_values = cast("Callable[[int], None]", intrinsic(_move_values(8)))
_move_2_values = cast("Callable[[int], None]", intrinsic(_move_values(2)))


@kernel_inline
def move_tags(address: int, count: int, kept: int) -> None:
    """Move `count` tags that end before `address` on by one place, except their bits `kept`, which stay.

    The tag at `address` is overwritten in its other bits. All lie in one page.
    """
    end = address + 2
    while count >= 16:
        end -= 32
        count -= 16
        _move_16_tags(end, kept)
    while count >= 4:
        end -= 8
        count -= 4
        _move_4_tags(end, kept)
    while count > 0:
        end -= 2
        count -= 1
        store16(end, (load16(end) & kept) | (load16(end - 2) & ~kept))


@kernel_inline
def move_values(address: int, count: int) -> None:
    """Move `count` values that end before `address` on by one place. All lie in one page."""
    end = address + 4
    while count >= 8:
        end -= 32
        count -= 8
        _move_8_values(end)
    while count >= 2:
        end -= 8
        count -= 2
        _move_2_values(end)
    if count > 0:
        store32(end - 4, load32(end - 8))
