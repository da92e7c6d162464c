"""When a match is not believed: bounds on what a kept page may have as copies, and on how many copies there may be.

A filter that takes one text for all others (a consent wall, an error page, an extraction that returns a frame in place
of the article) drops a crawl without a word. So a match beyond a bound is no duplicate: the page is `undecided` and
passed on, and the reason begins with "guard" and the name of the bound (docs/adr/0015). Guards are part of a rule, so
of the policy: changing them is a record of the log. What they look at is counted by `core.decision.guard_tracker`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from dedup_service.core.errors import ConfigurationError

__all__ = ["NO_GUARDS", "Guards"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """Bounds; 0 asks nothing. Counts are estimated, with a standard error of a fifth.

    max_pages: different URLs whose pages match one kept page. A crawler's trap of session numbers has thousands.
    max_hosts: different hosts of these pages. A wire story stands on some hundreds.
    max_titles: different titles of these pages that have little of the kept page's: copies keep their title, walls do
    not.
    surge_percent: how many of a hundred recent pages, more than usual, may be suspicious copies
    (`core.decision.guard_tracker`).
    """

    max_pages: int = 10_000
    max_hosts: int = 500
    max_titles: int = 100
    surge_percent: int = 40

    def __post_init__(self) -> None:
        values: dict[str, object] = dict(self.to_dict())
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigurationError(f"{name} of the guards is a whole number from 0, got {value!r}")
        if self.surge_percent > 100:
            raise ConfigurationError(f"surge_percent of the guards is at most 100, got {self.surge_percent}")

    def __bool__(self) -> bool:
        """Whether anything is asked."""
        return any(self.to_dict().values())

    def to_dict(self) -> dict[str, int]:
        """The bounds as plain values."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The bounds by name; one that is missing, because a log is older than it, asks nothing.

        ConfigurationError for a name or a value that is none.
        """
        known = [field.name for field in fields(cls)]
        if unknown := values.keys() - set(known):
            raise ConfigurationError(f"guards are {', '.join(known)}, got {min(unknown)!r}")
        return cls(**(dict.fromkeys(known, 0) | dict(values)))

    def __str__(self) -> str:
        names = {"max_pages": "pages", "max_hosts": "hosts", "max_titles": "titles", "surge_percent": "% surge"}
        return ", ".join(f"{value} {names[name]}" for name, value in self.to_dict().items() if value) or "none"


NO_GUARDS = Guards(max_pages=0, max_hosts=0, max_titles=0, surge_percent=0)
