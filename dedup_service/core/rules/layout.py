"""How the index of kept pages is laid out, as far as candidates depend on it.

The layout is recorded with the first policy of a log or a state and never changes after it: with another one
the same pages could get other verdicts.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from dedup_service.core.errors import ConfigurationError

_SLOTS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexLayout:
    """The layout of the index.

    Attributes:
        slots: Slots of the cell index, 1, 2, 4 … 64: a page belongs to the slot of its ordinal modulo this number,
            and as many machines at most can share the index.
        window: Pages, 1 or more, by which cells lag behind the log. The pages in between are compared with
            each new page one by one.

    Raises:
        ConfigurationError: If a value is out of range.

    Example:
        >>> IndexLayout().to_dict()
        {'slots': 8, 'window': 4096}
    """

    slots: int = 8
    window: int = 4096

    def __post_init__(self) -> None:
        if self.slots not in _SLOTS or self.window < 1:
            raise ConfigurationError(
                f"an index has {', '.join(map(str, _SLOTS))} slots and a window of 1 page or more, "
                f"got {self.slots} and {self.window}"
            )

    def to_dict(self) -> dict[str, int]:
        """Return the layout as plain values for a policy record."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a layout from the values of a policy record.

        Args:
            values: What `to_dict` returned.

        Returns:
            The layout.

        Raises:
            ConfigurationError: If a value is unknown or out of range.
        """
        try:
            return cls(**values)
        except TypeError as error:
            raise ConfigurationError(f"an index layout has slots and window, got {dict(values)}") from error


DEFAULT_LAYOUT = IndexLayout()
"""The layout of a new log or state."""
