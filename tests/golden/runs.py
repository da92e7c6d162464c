"""A run: a set of pages that takes one way."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Run:
    """A set that takes a way. decide: (an empty folder) → verdicts as lines; the state, if any, is in the folder."""

    set: str
    way: str
    decide: Callable[[Path], list[bytes]]
    is_exact: bool = True
    is_data: bool = False
