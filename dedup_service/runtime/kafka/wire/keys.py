"""What messages are keyed by: the canonical URL, so that the visits of one page stay together and in order."""

__all__ = ["STATS_KEY", "page_key"]

STATS_KEY = b"stats"
"""One key for all figures: they stay in one partition, in order."""


def page_key(canonical_url: str) -> bytes:
    """Return the key of a page, of its record in the log and of its verdict.

    >>> page_key("https://news.example/a?b=1")
    b'https://news.example/a?b=1'
    """
    return canonical_url.encode("utf-8", "replace")
