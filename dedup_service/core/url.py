"""Canonical URLs: one address for one page, and when to accept the one that a page states.

Goal: all visits of a page have the same `canonical_url`, and two pages never do. When in doubt, there are
two pages.
How: w3lib normalises case, IDNA, percent-encoding, dot segments and the order of the query. Default ports,
fragments, session ids, and parameters that name a campaign rather than a page are removed.
courlan is not used: its list also removes `cid`, `uid`, `source` and `keyword`, which name pages on many
sites. A bare `from`, `ref` or `source` therefore stays.
Invariant: `canonicalise` is idempotent.
Source: RFC 3986, section 6; RFC 6596 (rel=canonical).
"""

import re
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

import xxhash
from w3lib.url import canonicalize_url, url_query_cleaner

from dedup_service.core.errors import RecordError
from dedup_service.core.size_limits import MAX_URL_CHARS

__all__ = ["accepted_canonical_url", "canonicalise", "host_hash", "url_hash"]

DEFAULT_PORTS = {"http": 80, "https": 443}
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
# URLs that normalisation would not change, such as those of most articles, recognised in a tenth of the
# time.
_LABEL = r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*"
_CANONICAL = re.compile(rf"https?://{_LABEL}(?:\.{_LABEL})+(?:/[a-zA-Z0-9_-]+)+(?:\.[a-z]+)?")
_TRACKING = re.compile("|".join(TRACKING_PARAMETERS), re.IGNORECASE)
_PATH_SESSION = re.compile(r";(?:jsessionid|phpsessid)=[^/;?]*", re.IGNORECASE)
_HOME_PATH = re.compile(r"/(?:(?:index|default|home|main)\.\w{2,5})?", re.IGNORECASE)
_VARIANT_HOST = re.compile(r"(?:www|m|wap|mobile)\.(?=[^.]+\.)")
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*|[0-9a-f.]*:[0-9a-f:.]*", re.ASCII)


def canonicalise(url: str) -> str:
    """Return the address that identifies the page at `url`, an absolute http or https address.

    Raises RecordError if it is not one, or has no usable host or port.

    >>> canonicalise("HTTPS://News.Example.com:443/a/../b?utm_source=x&id=7#top")
    'https://news.example.com/b?id=7'
    """
    if _CANONICAL.fullmatch(url) and len(url) <= MAX_URL_CHARS:
        return url
    try:
        parts = _split(url)
        cleaned = _PATH_SESSION.sub("", urlunsplit(parts._replace(netloc=_netloc(parts), fragment="")))
        return canonicalize_url(_without_tracking(canonicalize_url(cleaned)))
    except (ValueError, UnicodeError) as error:
        raise RecordError(f"invalid URL {_shown(url)}: {error}; give an absolute http or https URL") from error


def url_hash(canonical_url: str) -> int:
    """Return the unsigned 64-bit key under which states and indexes store a canonical URL."""
    return xxhash.xxh3_64_intdigest(canonical_url.encode("utf-8", "surrogatepass"))


def host_hash(canonical_url: str) -> int:
    """Return the unsigned 32-bit key of the host, with its port, of a canonical URL."""
    host = canonical_url.partition("://")[2].partition("/")[0]
    return xxhash.xxh3_64_intdigest(host.encode("utf-8", "surrogatepass")) >> 32


def accepted_canonical_url(url: str, link: str | None) -> str:
    """Return the canonical URL of a page that was fetched from `url` and names `link` as rel=canonical.

    The link is resolved against `url`. It is not accepted if it is invalid, if it names another host (apart
    from a leading `www.` or `m.`), or if it names a home page and `url` does not: many sites point every
    page there.
    Raises RecordError if `url` itself is invalid.
    """
    fetched = canonicalise(url)
    if not link or not link.strip():
        return fetched
    try:
        stated = canonicalise(urljoin(fetched, link.strip()))
    except (RecordError, ValueError):
        return fetched
    here, there = urlsplit(fetched), urlsplit(stated)
    if _bare_host(here) != _bare_host(there) or (_is_home(there) and not _is_home(here)):
        return fetched
    return stated


def _split(url: str) -> SplitResult:
    """Return the parts of an absolute Web address. Raises ValueError, which says what is wrong."""
    if len(url) > MAX_URL_CHARS:
        raise ValueError(f"{len(url)} characters, limit {MAX_URL_CHARS}")
    parts = urlsplit(url.strip())
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError(f"the scheme is {parts.scheme!r}, not http or https")
    return parts


def _netloc(parts: SplitResult) -> str:
    """Return the host in lower case, and the port if it is not the default."""
    host = (parts.hostname or "").removesuffix(".")
    if not host.isascii():
        host = host.encode("idna").decode("ascii").lower().removesuffix(".")
    if not _HOST.fullmatch(host):
        raise ValueError(f"the host is {parts.hostname!r}")
    host = f"[{host}]" if ":" in host else host
    port = parts.port
    return host if port is None or port == DEFAULT_PORTS[parts.scheme] else f"{host}:{port}"


def _without_tracking(url: str) -> str:
    """Return the URL without the query parameters that name a campaign, a click or a session."""
    query = urlsplit(url).query
    names = [name for pair in query.split("&") if _TRACKING.fullmatch(name := pair.partition("=")[0])]
    return url_query_cleaner(url, names, remove=True, unique=False) if names else url


def _bare_host(parts: SplitResult) -> str:
    return _VARIANT_HOST.sub("", parts.netloc, count=1)


def _is_home(parts: SplitResult) -> bool:
    return _HOME_PATH.fullmatch(parts.path or "/") is not None and not parts.query


def _shown(url: str) -> str:
    return repr(url if len(url) <= 120 else url[:119] + "…")
