"""A page: what extraction gives, and what everything above it works on.

Goal: one plain value that a crawl, a JSON line and a WARC record all turn into.
Invariant: a page without text says why in `problem`; nobody has to catch an exception to learn it.

The values that stand for a page once its text has been read.

A `PreparedPage` is all that a decision needs and all that a worker process sends back.
"""

from dataclasses import dataclass

__all__ = ["CHANNELS", "Fingerprint", "Page", "PreparedPage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One fetched page, reduced to what a reader would call the article.

    url: the address it was fetched from.
    canonical_url: the address that identifies it (see `core.url`); two visits of one page share it.
    id: the caller's name for the page; the URL where the caller has none.
    title, text: main title and main text, as extracted, not normalised; text may be empty.
    lang: BCP 47 tag as declared or detected, or None.
    keywords, tags, references: metadata, in page order.
    site_name, date: as the page states them; date is ISO 8601, from cheap sources only.
    problem: why there is no text to judge ("no main text", "page too large", …), or None.
    """

    url: str
    canonical_url: str
    id: str
    title: str = ""
    text: str = ""
    lang: str | None = None
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    site_name: str | None = None
    date: str | None = None
    problem: str | None = None


CHANNELS = ("words", "body")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The SimHash of each channel: unsigned integers below 2**bits, None where a channel has no features."""

    words: int | None = None
    body: int | None = None


@dataclass(frozen=True, slots=True)
class PreparedPage:
    """A page with its fingerprint.

    body_hash: unsigned 64-bit hash of the normalised body; equal bodies have equal hashes; None where there is no text.
    evidence: what candidates are verified with (`core.evidence`); b"" where the page has neither text nor metadata.
    reason: why the page cannot be judged, which makes its verdict `undecided`; None where it can.
    """

    page: Page
    fingerprint: Fingerprint
    body_hash: int | None
    evidence: bytes = b""
    reason: str | None = None
