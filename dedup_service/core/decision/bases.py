"""Bases of a log: states that it goes on from, so that their kept pages are compared with, too.

The log begins with theirs. The pages of the first base have the sequences that they have there, those of the next one
come after them, and the records of the log itself after all (docs/adr/0030).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.log_records import CorrectionRecord


class BasePlace(Protocol):
    """Which sequences are those of a base: `records` of them, after `after`."""

    @property
    def after(self) -> int:
        """What is added to its sequences."""
        ...

    @property
    def records(self) -> int:
        """The last of them that counts."""
        ...


P = TypeVar("P", bound=BasePlace)


def base_of(bases: Sequence[P], sequence: int | None) -> P | None:
    """Return the base that has the page at `sequence`; None for a page of the log itself, or for None."""
    if sequence is None:
        return None
    return next((base for base in bases if base.after < sequence <= base.after + base.records), None)


@dataclass(frozen=True, slots=True)
class BasedState:
    """What a log with bases begins with, beside settled entries and names.

    decider: its state behind the last page of the bases. corrections: in force there, oldest first.
    """

    decider: DeciderState = field(default_factory=DeciderState)
    corrections: tuple[CorrectionRecord, ...] = ()
