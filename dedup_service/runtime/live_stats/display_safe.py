"""Make text from a page safe to display: of bounded length, without control and formatting characters.

Titles and URLs are untrusted text. Control characters (terminal escape codes among them), line breaks and bidirectional
formatting characters become a space or are removed. Markup is left as it is: it is displayed as text, not as HTML.
Source: Unicode Standard Annex 9 (bidirectional formatting), Technical Report 36 (security considerations).
"""

import re

MAX_TITLE, MAX_URL, MAX_WORDS = 300, 500, 200
"""Maximum number of characters of a title, of a URL, and of any other string (id, reason)."""

_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_FORMATTING = re.compile(r"[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]")
_TAGS = re.compile("[\U000e0000-\U000e007f]")
_HOST = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/?#@]*@)?(\[[0-9a-f:.]+\]|[^/?#:@\[\]]+)", re.IGNORECASE)


def cut(text: str, limit: int) -> str:
    """Return `text`; if it is longer than `limit` characters, its first `limit` - 1 and an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shown(text: str) -> str:
    """Return `text` without control and formatting characters, its white space as single spaces, stripped.

    >>> shown("a" + chr(0x202e) + "b" + chr(27) + "[31mc")
    'ab [31mc'
    """
    return harmless(text).strip()


def harmless(text: str) -> str:
    """Return `text` like `shown`, but not stripped: for pieces of a longer text."""
    return _BLANK.sub(" ", _TAGS.sub("", _FORMATTING.sub("", text)))  # first what may stand between two spaces


def host_of(url: str) -> str:
    """Return the host of a URL in lower case, without user and port; "" if there is none. Never raises.

    >>> host_of("https://Example.org:8080/a?b")
    'example.org'
    """
    match = _HOST.match(url)
    return match.group(1).lower() if match else ""
