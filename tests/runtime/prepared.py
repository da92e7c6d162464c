"""Prepared pages from a few numbers, for tests of what happens after the fingerprint."""

from dedup_service.core.fingerprint import Fingerprint, PreparedPage
from dedup_service.core.page import Page

SPACE_ID = "test-space"
SPACE = {"scheme": "test"}

STEP = 0x9E3779B97F4A7C15


def prepared(
    url: str,
    story: int,
    *,
    version: int = 0,
    page_id: str | None = None,
    text: str | None = None,
    reason: str | None = None,
    metadata: bytes = b"",
) -> PreparedPage:
    """The page at `url` telling `story`: stories are far apart, versions of one story a bit or two."""
    fingerprint = (story + 1) * STEP % (1 << 64) ^ version
    page = Page(
        url=url, canonical_url=url, id=page_id or url, title=f"story {story}", text=text or f"story {story}, {version}"
    )
    body_hash = (story * 1000 + version) * STEP % (1 << 64)
    return PreparedPage(page, Fingerprint(fingerprint, fingerprint), body_hash, metadata=metadata, reason=reason)
