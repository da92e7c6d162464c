"""A page, its fingerprints, and the prepared page that a decision needs.

`Page` is one plain value that a crawl, a JSON line and a WARC record all turn into. `PreparedPage` adds
everything that is computed from its text; it can be pickled, and is what a worker process sends back.
Invariant: a page without text gives the reason in `problem`; nobody has to catch an exception to learn it.
"""

from dataclasses import dataclass

from dedup_service.core.errors import RecordError
from dedup_service.core.url import canonicalise


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One fetched page, reduced to what a reader would call the article.

    Attributes:
        url: The address from which the page was fetched.
        canonical_url: The page's own address, which identifies it (see `core.url`), shared by all its visits. If it is
            not given, it is derived from `url`; of what is no Web address, that is `url` without white space around it.
        claimed_url: The address that the page names as rel=canonical, if it may (see `core.url`); None if it names
            none, or its own. A decision accepts it only if the texts agree.
        id: The caller's name for the page; `url` if it is not given.
        title: Main title as extracted, not normalised; may be empty.
        text: Main text as extracted, not normalised; may be empty.
        lang: BCP 47 tag, declared or detected, or None.
        keywords: Keywords of the page, in page order.
        tags: Tags of the page, in page order.
        references: References of the page, in page order.
        site_name: Name of the site as the page states it, or None.
        date: Publication date in ISO 8601 as the page states it, from cheap sources only, or None. Of a record that
            gives one, what it gives; `core.dates` reads it.
        text_percent: Characters of the main text in 100 characters of text of its HTML, menus and forms not counted,
            0 to 100; None for a page that was not extracted from HTML.
        problem: Why there is no text to judge ("no main text", "page too large", …), or None.

    Example:
        >>> page = Page(url="http://a.test/?utm_source=x", text="A text.")
        >>> page.canonical_url, page.id, page.title
        ('http://a.test/', 'http://a.test/?utm_source=x', '')
    """

    url: str
    canonical_url: str = None  # type: ignore[assignment] # `__post_init__` gives it a value
    id: str = None  # type: ignore[assignment] # as `canonical_url`
    title: str = ""
    text: str = ""
    lang: str | None = None
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    site_name: str | None = None
    date: str | None = None
    text_percent: int | None = None
    problem: str | None = None
    claimed_url: str | None = None

    def __post_init__(self) -> None:
        if self.id is None:
            object.__setattr__(self, "id", self.url)  # type: ignore[unreachable]
        if self.canonical_url is None:
            try:  # type: ignore[unreachable]
                own = canonicalise(self.url)
            except RecordError:
                own = self.url.strip()
            object.__setattr__(self, "canonical_url", own)


CHANNELS = ("words", "body")
"""The names of the channels, which are the fields of a `Fingerprint` and of a `Distance`."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The SimHash of each channel: unsigned integers below 2**bits, None where a channel has no features."""

    words: int | None = None
    body: int | None = None


@dataclass(frozen=True, slots=True)
class PreparedPage:
    """A page with everything that a decision needs to know of its text.

    Attributes:
        page: The page.
        fingerprint: The SimHash of each channel.
        body_hash: Unsigned 64-bit hash of the exact form of the body (`_native.exact_form`); None without text.
        evidence: Packed evidence with which candidates are verified (`core.evidence.packed`), some 730 bytes; b"" if
            the page has neither text nor metadata.
        reason: Why the page cannot be judged, which makes its verdict `undecided`; None if it can.
        text_hash: Unsigned 64-bit hash of the exact forms of title and body together; None without text.
        keys: Min-hash keys of the shingles (`core.evidence.keys`): uint32[8, levels], little-endian; b"" without any.
    """

    page: Page
    fingerprint: Fingerprint
    body_hash: int | None
    evidence: bytes = b""
    reason: str | None = None
    text_hash: int | None = None
    keys: bytes = b""
