"""What an explanation needs of a log of any kind: pages, texts, the rule, corrections, and the kept pages."""

from dataclasses import dataclass
from typing import Protocol

from dedup_service._native import Entry, HostText
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.errors import RecordError, StateError
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.url import canonicalise
from dedup_service.core.verdict import Verdict
from dedup_service.runtime.embedded.corrections import Correction


class UnknownPageError(StateError):
    """The page is not in the log. Check the address, and that this is its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPage:
    """A page of the log.

    entry: its entry, or the entry that it would have if it were kept. verdict: None if it is no longer known.
    original: sequence of the page that the verdict names, or None.
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
        """Sequence of the page in the log."""
        return self.entry.sequence


@dataclass(frozen=True, slots=True)
class RuleInForce:
    """The rule that decided a page. since: sequence of its policy record; None if it is not known.

    changed: whether another rule is in force now.
    """

    rule: MatchRule
    since: int | None
    changed: bool = False


class PageSource(Protocol):
    """A log of pages. Any method may raise StateError; BrokerError if it is the log of a service."""

    @property
    def space_id(self) -> str:
        """The space of its fingerprints."""
        ...

    def find(self, reference: str | int) -> KnownPage | None:
        """Return the page at a sequence, or the latest visit of a URL; None if there is none."""
        ...

    def judged(self, page: KnownPage) -> KnownPage:
        """Return `page` with its verdict, if that is known."""
        ...

    def text(self, page: KnownPage) -> str | None:
        """Return the main text of a page; None if it is no longer kept."""
        ...

    def held(self) -> HeldEntries:
        """Return the pages that others are compared with."""
        ...

    def host_text(self) -> HostText:
        """Return which sentences are hosts' own text now; the caller does not change it."""
        ...

    def rule(self, page: KnownPage) -> RuleInForce:
        """Return the rule that was in force when `page` was decided."""
        ...

    def corrections(self) -> list[Correction]:
        """Return all corrections, in the order of the log; at least those in force."""
        ...


def references_of(url: str) -> tuple[str, ...]:
    """Return the addresses under which a page asked for as `url` may be recorded: as given, and canonical."""
    try:
        return tuple(dict.fromkeys([url, canonicalise(url)]))
    except RecordError:
        return (url,)
