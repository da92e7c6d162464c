"""A dictionary that works out what it lacks and forgets everything when it grows too large.

For functions of single words, asked again and again for the few thousand words that make most of any text.
"""

from collections.abc import Callable, Hashable
from typing import TypeVar

__all__ = ["Memory"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memory(dict[K, V]):
    """`memory[key]` is `function(key)`, remembered; at most `limit` keys are held."""

    def __init__(self, function: Callable[[K], V], *, limit: int = 200_000) -> None:
        super().__init__()
        self._function = function
        self._limit = limit

    def __missing__(self, key: K) -> V:
        if len(self) >= self._limit:
            self.clear()
        value = self[key] = self._function(key)
        return value
