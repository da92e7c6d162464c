"""What the topics are called: one prefix makes a set of its own."""

import re
from dataclasses import dataclass

from dedup_service.core.errors import ConfigurationError

__all__ = ["Topics"]

_ALLOWED = re.compile(r"[A-Za-z0-9._-]{0,200}")  # Kafka's own rule for names of at most 249 characters


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of one set of topics; raises ConfigurationError for a prefix that Kafka would refuse.

    >>> Topics("news.").unique
    'news.pages.unique'
    """

    prefix: str = ""

    def __post_init__(self) -> None:
        if not _ALLOWED.fullmatch(self.prefix):
            raise ConfigurationError(
                f"prefix {self.prefix!r} does not fit a topic's name: letters, digits, '.', '_' and '-', 200 at most"
            )

    @property
    def pages(self) -> str:
        """Input: what crawlers publish."""
        return f"{self.prefix}pages"

    @property
    def fingerprints(self) -> str:
        """The log: one partition, whose offsets are the total order."""
        return f"{self.prefix}fingerprints"

    @property
    def unique(self) -> str:
        """Pages to store: unique, updated, undecided."""
        return f"{self.prefix}pages.unique"

    @property
    def duplicate(self) -> str:
        """Pages known already: duplicate, unchanged."""
        return f"{self.prefix}pages.duplicate"

    @property
    def verdicts(self) -> str:
        """One verdict for each input record."""
        return f"{self.prefix}verdicts"

    @property
    def dlq(self) -> str:
        """Records that describe no page, with their original bytes."""
        return f"{self.prefix}pages.dlq"

    @property
    def stats(self) -> str:
        """Counts, once a second at most."""
        return f"{self.prefix}dedup.stats"

    @property
    def all(self) -> tuple[str, ...]:
        """Every name, in the order of a page's way."""
        return self.pages, self.fingerprints, self.unique, self.duplicate, self.verdicts, self.dlq, self.stats
