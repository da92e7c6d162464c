"""Frozen dataclasses made as fast as others.

The `__init__` of a frozen dataclass sets every field through `object.__setattr__`, which takes four times as long as an
assignment. Where values are made for each of millions of pages, `quick_maker` fills an unfrozen twin with the same
slots, and then calls it by its name.
"""

from collections.abc import Callable
from dataclasses import MISSING, field, fields, make_dataclass
from typing import Any, TypeVar

__all__ = ["quick_maker"]

T = TypeVar("T")


def quick_maker(kind: type[T]) -> Callable[..., T]:
    """Return a function that makes values of a frozen dataclass with slots, without `__post_init__`.

    Its arguments are those of the class, by position or name.
    """
    own: list[Any] = [
        (one.name, one.type) if one.default is MISSING else (one.name, one.type, field(default=one.default))
        for one in fields(kind)  # type: ignore[arg-type]
    ]
    twin: Any = make_dataclass(kind.__name__, own, slots=True)

    def make(*values: Any, **named: Any) -> T:
        value = twin(*values, **named)
        value.__class__ = kind
        return value  # type: ignore[no-any-return]

    return make
