"""Guards: bounds beyond which a match is not accepted.

A filter that mistakes one shared text for the article of many pages (a consent wall, an error page, an
extraction that returns a frame in place of the article) silently drops a whole crawl. A match beyond a bound
is therefore no duplicate: the page is `undecided` and passed on, and the reason begins with "guard" and the
name of the bound (docs/adr/0015). Guards are part of a rule, and so of the policy: a record of the log
changes them.
`core.decision.guard_tracker` counts what they look at.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from dedup_service.core.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """Bounds on the copies of one kept page, and on suspicious copies overall; 0 switches a bound off.

    Counts are estimates with a standard error of a fifth.

    Attributes:
        max_pages: Different URLs whose pages match one kept page. A trap of session numbers has thousands.
        max_hosts: Different hosts of these pages. A wire story appears on some hundreds.
        max_titles: Different titles of these pages that share little with the kept page's title. Copies keep
            their title, consent walls do not.
        surge_percent: How many of a hundred recent pages, more than usual, may be suspicious copies
            (see `core.decision.guard_tracker`); at most 100.

    Raises:
        ConfigurationError: If a bound is not a whole number from 0, or `surge_percent` is above 100.

    Example:
        >>> str(Guards(max_hosts=0))
        '10000 pages, 100 titles, 40 % surge'
    """

    max_pages: int = 10_000
    max_hosts: int = 500
    max_titles: int = 100
    surge_percent: int = 40

    def __post_init__(self) -> None:
        values: dict[str, object] = dict(self.to_dict())
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigurationError(f"{name} of the guards must be a whole number from 0, got {value!r}")
        if self.surge_percent > 100:
            raise ConfigurationError(f"surge_percent of the guards must be at most 100, got {self.surge_percent}")

    def __bool__(self) -> bool:
        """Whether any bound is switched on."""
        return any(self.to_dict().values())

    def to_dict(self) -> dict[str, int]:
        """Return the bounds by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make guards from bounds by name.

        Args:
            values: Bounds by name. A missing bound is off: the log may be older than that bound.

        Returns:
            The guards.

        Raises:
            ConfigurationError: If a name is unknown or a value is out of range.
        """
        known = [field.name for field in fields(cls)]
        if unknown := values.keys() - set(known):
            raise ConfigurationError(f"guards are {', '.join(known)}, got {min(unknown)!r}")
        return cls(**(dict.fromkeys(known, 0) | dict(values)))

    def __str__(self) -> str:
        names = {"max_pages": "pages", "max_hosts": "hosts", "max_titles": "titles", "surge_percent": "% surge"}
        return ", ".join(f"{value} {names[name]}" for name, value in self.to_dict().items() if value) or "none"


NO_GUARDS = Guards(max_pages=0, max_hosts=0, max_titles=0, surge_percent=0)
"""Every bound off: all matches are accepted."""
