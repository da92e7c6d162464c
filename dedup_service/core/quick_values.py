"""Frozen dataclasses made as fast as others.

The `__init__` of a frozen dataclass sets every field through `object.__setattr__`, which takes four times as long as an
assignment. Where values are made for each of millions of pages, `quick_maker` fills an unfrozen twin with the same
slots in one function, whose text is made from the names of the fields, and then calls it by its name.
"""

from collections.abc import Callable
from dataclasses import MISSING, field, fields, make_dataclass
from typing import Any, TypeVar, cast

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
    declared = fields(kind)  # type: ignore[arg-type]
    names = [one.name for one in declared]
    source = [f"def make({', '.join(names)}):", " _made = _new(_twin)", *(f" _made.{name} = {name}" for name in names)]
    made: dict[str, Any] = {"_new": object.__new__, "_twin": twin, "_kind": kind}
    exec("\n".join([*source, " _made.__class__ = _kind", " return _made"]), made)  # noqa: S102 - as `dataclass` does
    make: Any = made["make"]
    make.__defaults__ = tuple(one.default for one in declared if one.default is not MISSING)
    return cast("Callable[..., T]", make)
