"""How many kept pages stay entries, and for how long: the bounds of expiry.

    Keep.parse("90d,100000000")

The bounds are part of the policy, because later verdicts depend on them: a copy of an expired page is unique.
`core.decision.expiry` says which entries leave, and when.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from dedup_service.core.errors import ConfigurationError

_MINUTES = {"h": 60, "d": 1_440, "w": 10_080}
_PART = re.compile(r"([0-9]{1,12})([hdw]?|(?: ?pages)?)")
_FORMS = "a number of pages (100000000, 90 pages), an age (90d, 12h or 8w), both (90d,100000000), or all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Bounds of expiry; None is no bound.

    Attributes:
        max_pages: Kept pages, 1 or more: when another page is kept, the earliest one leaves.
        max_age_minutes: Age, 1 or more: a page that came longer before the latest time of the log leaves.

    Raises:
        ConfigurationError: If a bound is below 1.

    Example:
        >>> Keep.parse("90d"), Keep.parse("2w,1000000")
        (Keep(max_pages=None, max_age_minutes=129600), Keep(max_pages=1000000, max_age_minutes=20160))
        >>> str(Keep.parse("14d,1000000")), str(KEEP_ALL)
        ('1,000,000 pages, 2w', 'all')
    """

    max_pages: int | None = None
    max_age_minutes: int | None = None

    def __post_init__(self) -> None:
        for bound in (self.max_pages, self.max_age_minutes):
            if bound is not None and bound < 1:
                raise ConfigurationError(f"keep {_FORMS}: a bound is 1 or more, got {bound}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the bounds that `text` names.

        Args:
            text: A number of pages, an age in hours, days or weeks (`h`, `d`, `w`), both with a comma between
                them, or `all`.

        Returns:
            The bounds.

        Raises:
            ConfigurationError: `text` is something else.
        """
        bounds: dict[str, int] = {}
        for part in [] if text.strip() == "all" else text.split(","):
            found = _PART.fullmatch(part.strip())
            name = "max_age_minutes" if found and found[2] in _MINUTES else "max_pages"
            if found is None or name in bounds or not int(found[1]):
                raise ConfigurationError(f"keep {_FORMS}, got {text!r}")
            bounds[name] = int(found[1]) * _MINUTES.get(found[2], 1)
        return cls(**bounds)

    def __bool__(self) -> bool:
        """Whether there is a bound."""
        return self.max_pages is not None or self.max_age_minutes is not None

    def __str__(self) -> str:
        parts = [] if self.max_pages is None else [f"{self.max_pages:,} pages"]
        age = self.max_age_minutes
        if age is not None:
            units = [unit for unit in ("w", "d", "h") if age % _MINUTES[unit] == 0]
            parts.append(f"{age // _MINUTES[units[0]]}{units[0]}" if units else f"{age} minutes")
        return ", ".join(parts) or "all"

    def lowers(self, other: Self) -> bool:
        """Whether these are the bounds `other`, which has one, with fewer pages."""
        if not other or self.max_pages is None or self.max_age_minutes != other.max_age_minutes:
            return False
        return other.max_pages is None or self.max_pages < other.max_pages

    def to_dict(self) -> dict[str, int]:
        """Return the bounds as plain values for a policy record, {} if there are none."""
        values = {"max_pages": self.max_pages, "max_age_minutes": self.max_age_minutes}
        return {name: bound for name, bound in values.items() if bound is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make bounds from the values of a policy record.

        Args:
            values: What `to_dict` returned.

        Returns:
            The bounds.

        Raises:
            ConfigurationError: If a value is unknown or below 1.
        """
        try:
            return cls(**values)
        except TypeError as error:
            raise ConfigurationError(f"keep has max_pages and max_age_minutes, got {dict(values)}") from error


KEEP_ALL = Keep()
"""No bound: no entry expires. What a log or state has that names none."""
