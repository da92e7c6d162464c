"""The values that stand for a page once its text has been read.

A `PreparedPage` is all that a decision needs and all that a worker process sends back.
"""

from dataclasses import dataclass

from dedup_service.core.page import Page

__all__ = ["CHANNELS", "Fingerprint", "PreparedPage"]

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
