"""Text that came with a page, made fit to be shown: of bounded length, without characters that act on others.

Titles and URLs are written by strangers. Control characters (escape codes of terminals among them), line breaks and
the formatting characters that turn the direction of what follows become a space or nothing; markup stays what it is,
since whoever shows it shows text, not HTML.
Source: Unicode Standard Annex 9 (bidirectional formatting), Technical Report 36 (security considerations).
"""

import re

__all__ = ["MAX_TITLE", "MAX_URL", "MAX_WORDS", "cut", "harmless", "host_of", "shown"]

MAX_TITLE, MAX_URL, MAX_WORDS = 300, 500, 200
"""Characters of a title, of a URL, and of whatever else (ids, reasons)."""

_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_ACTING = re.compile(r"[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]")
_TAGS = re.compile("[\U000e0000-\U000e007f]")
_HOST = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/?#@]*@)?(\[[0-9a-f:.]+\]|[^/?#:@\[\]]+)", re.IGNORECASE)


def cut(text: str, maximum: int) -> str:
    """Return `text`, or its first `maximum` - 1 characters and an ellipsis."""
    return text if len(text) <= maximum else text[: maximum - 1] + "…"


def shown(text: str) -> str:
    """Return `text` without characters that act; its white space as single spaces.

    >>> shown("a" + chr(0x202e) + "b" + chr(27) + "[31mc")
    'ab [31mc'
    """
    return harmless(text).strip()


def harmless(text: str) -> str:
    """Return a piece of text likewise, with the blanks at its ends."""
    return _TAGS.sub("", _ACTING.sub("", _BLANK.sub(" ", text)))


def host_of(url: str) -> str:
    """Return the host of a URL, lower case, without user and port; "" where it names none. Never raises.

    >>> host_of("https://Example.org:8080/a?b")
    'example.org'
    """
    found = _HOST.match(url)
    return found.group(1).lower() if found else ""
