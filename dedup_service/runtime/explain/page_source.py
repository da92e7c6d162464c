"""What an explanation asks of a log, whichever it is: pages, texts, the rule, corrections, and who is kept now."""

from dataclasses import dataclass
from typing import Protocol

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_arrays import HeldEntries
from dedup_service.core.errors import RecordError, StateError
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.url import canonicalise
from dedup_service.core.verdict import Verdict
from dedup_service.runtime.embedded.corrections import Correction

__all__ = ["KnownPage", "PageSource", "RuleInForce", "UnknownPageError", "references_of"]


class UnknownPageError(StateError):
    """No such page is in the log. Look at the address, and at whose log it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPage:
    """A page of the log.

    entry: what is kept of it, as if it had been kept. verdict: None where it is known no longer; of: sequence of the
    page that it names, or None.
    """

    id: str
    url: str
    canonical_url: str
    title: str
    entry: Entry
    verdict: Verdict | None = None
    original: int | None = None

    @property
    def sequence(self) -> int:
        """Its place in the log."""
        return self.entry.sequence


@dataclass(frozen=True, slots=True)
class RuleInForce:
    """The rule that decided a page. since: sequence of its policy record, None where that is not known.

    changed: another one is in force now.
    """

    rule: MatchRule
    since: int | None
    changed: bool = False


class PageSource(Protocol):
    """A log that can be asked. Any method may raise StateError, and BrokerError where it is a service's."""

    @property
    def space_id(self) -> str:
        """The space of its fingerprints."""
        ...

    def find(self, reference: str | int) -> KnownPage | None:
        """Return the page at a sequence, or the latest visit of a URL; None where there is none."""
        ...

    def judged(self, page: KnownPage) -> KnownPage:
        """Return `page` with its verdict, where that is known."""
        ...

    def text(self, page: KnownPage) -> str | None:
        """Return the main text of a page; None where it is gone."""
        ...

    def held(self) -> HeldEntries:
        """Return the pages that others are compared with now."""
        ...

    def rule(self, page: KnownPage) -> RuleInForce:
        """Return the rule that was in force when `page` was decided."""
        ...

    def corrections(self) -> list[Correction]:
        """Return all corrections, in the order of the log; those that hold, at least."""
        ...


def references_of(url: str) -> tuple[str, ...]:
    """Return the addresses that a page may stand under which is asked for as `url`: as it is, and canonical."""
    try:
        return tuple(dict.fromkeys([url, canonicalise(url)]))
    except RecordError:
        return (url,)
