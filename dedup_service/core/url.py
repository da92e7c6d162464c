"""One address for one page: canonical URLs, and when to believe a page's own.

Goal: two visits of a page have the same `canonical_url`, and two pages never do; where in doubt, two.
How: w3lib normalises (case, IDNA, percent-encoding, dot segments, sorted query); then default ports,
fragments, session ids and parameters that name a campaign rather than a page are taken out.
courlan is not used for it: its list also drops `cid`, `uid`, `source` and `keyword`, which name pages on many
sites. A bare `from`, `ref` or `source` therefore stays.
Invariant: `canonicalise` is idempotent.
Source: RFC 3986, section 6; RFC 6596 (rel=canonical).
"""

import re
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

import xxhash
from w3lib.url import canonicalize_url, url_query_cleaner

from dedup_service.core.errors import RecordError

__all__ = ["believed_canonical", "canonicalise", "url_hash"]

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_URL_LENGTH = 8192
TRACKING_PARAMETERS = (
    # campaigns: Google, Matomo, HubSpot, Adobe, Mailchimp, Marketo, Vero, Olytics
    r"(?:utm|mtm|pk|hsa|itm|oly|vero)_\w+|_hs(?:enc|mi)|s_cid|mc_[ce]id|mkt_tok",
    # clicks: Google, Microsoft, Meta, Twitter, TikTok, Yandex
    r"gclid|gclsrc|dclid|gbraid|wbraid|msclkid|fbclid|igshid|igsh|twclid|ttclid|yclid|_ga|_gl",
    # China: Alibaba, Bilibili, Baidu statistics, WeChat
    r"spm|scm|spm_id_from|vd_source|share_source|share_medium|hmsr|hmpl|hmcu|hmkw|hmci|wechat_redirect|nsukey",
    # sessions
    r"jsessionid|phpsessid|aspsessionid\w*|sessionid|cfid|cftoken",
)
# What nothing below would change, most addresses of articles among it: a tenth of the time.
_LABEL = r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*"
_CANONICAL = re.compile(rf"https?://{_LABEL}(?:\.{_LABEL})+(?:/[a-zA-Z0-9_-]+)+(?:\.[a-z]+)?")
_TRACKING = re.compile("|".join(TRACKING_PARAMETERS), re.IGNORECASE)
_PATH_SESSION = re.compile(r";(?:jsessionid|phpsessid)=[^/;?]*", re.IGNORECASE)
_HOME_PATH = re.compile(r"/(?:(?:index|default|home|main)\.\w{2,5})?", re.IGNORECASE)
_VARIANT_HOST = re.compile(r"(?:www|m|wap|mobile)\.(?=[^.]+\.)")
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*|[0-9a-f.]*:[0-9a-f:.]*", re.ASCII)


def canonicalise(url: str) -> str:
    """The address that identifies a page.

    url: absolute, http or https.
    Raises RecordError where it is not, or has no usable host or port.

    >>> canonicalise("HTTPS://News.Example.com:443/a/../b?utm_source=x&id=7#top")
    'https://news.example.com/b?id=7'
    """
    if _CANONICAL.fullmatch(url) and len(url) <= MAX_URL_LENGTH:
        return url
    try:
        parts = _split(url)
        cleaned = _PATH_SESSION.sub("", urlunsplit(parts._replace(netloc=_netloc(parts), fragment="")))
        return canonicalize_url(_without_tracking(canonicalize_url(cleaned)))
    except (ValueError, UnicodeError) as error:
        raise RecordError(f"invalid URL {_shown(url)}: {error}; give an absolute http or https URL") from error


def url_hash(canonical_url: str) -> int:
    """The unsigned 64-bit key under which everything remembers a canonical URL."""
    return xxhash.xxh3_64_intdigest(canonical_url.encode("utf-8", "surrogatepass"))


def believed_canonical(url: str, link: str | None) -> str:
    """The canonical URL of a page that was fetched from `url` and names `link` as rel=canonical.

    A link is resolved against `url`. It is not believed where it is invalid, names another host (a leading
    `www.` or `m.` apart) or a home page that `url` is not: many sites point every page there.
    Raises RecordError where `url` itself is invalid.
    """
    own = canonicalise(url)
    if not link or not link.strip():
        return own
    try:
        named = canonicalise(urljoin(own, link.strip()))
    except (RecordError, ValueError):
        return own
    mine, theirs = urlsplit(own), urlsplit(named)
    if _bare_host(mine) != _bare_host(theirs) or (_is_home(theirs) and not _is_home(mine)):
        return own
    return named


def _split(url: str) -> SplitResult:
    """The parts of an absolute Web address; ValueError says what is missing."""
    if len(url) > MAX_URL_LENGTH:
        raise ValueError(f"{len(url)} characters, at most {MAX_URL_LENGTH} are read")
    parts = urlsplit(url.strip())
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError(f"the scheme is {parts.scheme!r}, not http or https")
    return parts


def _netloc(parts: SplitResult) -> str:
    """Host in lower case and, unless it is the default, port; user and password name no page."""
    host = (parts.hostname or "").removesuffix(".")
    if not host.isascii():
        host = host.encode("idna").decode("ascii").lower().removesuffix(".")
    if not _HOST.fullmatch(host):
        raise ValueError(f"the host is {parts.hostname!r}")
    host = f"[{host}]" if ":" in host else host
    port = parts.port
    return host if port is None or port == DEFAULT_PORTS[parts.scheme] else f"{host}:{port}"


def _without_tracking(url: str) -> str:
    """The URL without the query parameters that name a campaign, a click or a session."""
    query = urlsplit(url).query
    names = [name for pair in query.split("&") if _TRACKING.fullmatch(name := pair.partition("=")[0])]
    return url_query_cleaner(url, names, remove=True, unique=False) if names else url


def _bare_host(parts: SplitResult) -> str:
    return _VARIANT_HOST.sub("", parts.netloc, count=1)


def _is_home(parts: SplitResult) -> bool:
    return _HOME_PATH.fullmatch(parts.path or "/") is not None and not parts.query


def _shown(url: str) -> str:
    return repr(url if len(url) <= 120 else url[:119] + "…")
