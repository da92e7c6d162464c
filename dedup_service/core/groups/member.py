"""A member of a group: one page of the log with its verdict, and what a policy may look at."""

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from dedup_service.core.log_records import Source
from dedup_service.core.verdict import Distance, VerdictKind

_NO_DISTANCE = Distance()


class Removal(StrEnum):
    """Why a page of a group has no entry any more. One that expired has none either, but nothing is wrong with it.

    Attributes:
        RETRACTION: It was retracted: taken down, or never stored. It never stands for a group.
        UNWRITTEN: The service never passed it on. It never stands for a group.
        UPDATE: A later visit of its URL had another text, which began a group of its own.
        CORRECTION: A person said that it is a duplicate of a page of another group.
    """

    RETRACTION = "retraction"
    UNWRITTEN = "unwritten"
    UPDATE = "update"
    CORRECTION = "correction"

    @property
    def is_gone(self) -> bool:
        """Whether the page is not there to stand for anything."""
        return self in {Removal.RETRACTION, Removal.UNWRITTEN}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A page of a group.

    Attributes:
        sequence: Its place in the log.
        id: The caller's name for it.
        url: The address from which it was fetched.
        canonical_url: The address that identifies it.
        kind: Its verdict.
        original: Sequence of the page that the verdict names; None if it names none.
        distance: Hamming distances to that page.
        score: How alike the two are, 0 to 1, or None.
        reason: The rule that decided, or None.
        title: The first 300 characters of its title; "" if it has none.
        date: When it was published, as YYYY-MM-DD; None if it does not say so, or that was not stored.
        text_percent: Share of main text, as `Page.text_percent`, 0 to 100; None if it is not known, or was not stored.
        letters: Letters and digits of its main text; None if that is not stored any more.
        sentences: Different sentences of its main text, or None, likewise.
        host_sentences: Share of the sentences that are the own text of its host, 0 to 1; None if a policy does not
            ask for it or it is not known.
        logged_ms: When it was logged, Unix milliseconds; None if that is not known. A state folder knows the hour, or
            the minute if pages expire by age.
        source: Its place in the input topic of a service; None in a state folder.
        removed: Why it has no entry any more, or None.
    """

    sequence: int
    id: str
    url: str
    canonical_url: str
    kind: VerdictKind
    original: int | None = None
    distance: Distance = _NO_DISTANCE
    score: float | None = None
    reason: str | None = None
    title: str = ""
    date: str | None = None
    text_percent: int | None = None
    letters: int | None = None
    sentences: int | None = None
    host_sentences: float | None = None
    logged_ms: int | None = None
    source: Source | None = None
    removed: Removal | None = None

    @property
    def host(self) -> str:
        """The host of the canonical URL, with its port if that is not the usual one; "" if the URL has none."""
        try:
            return urlsplit(self.canonical_url).netloc
        except ValueError:
            return ""

    @property
    def own_letters(self) -> float | None:
        """Letters of the main text without the own text of the host, estimated; None if they are not known."""
        return None if self.letters is None else self.letters * (1.0 - (self.host_sentences or 0.0))
