"""Canonical URLs: one address for one page, and which other address a page may claim.

Goal: all visits of a page have the same `canonical_url`, and two pages never do. When in doubt, there are
two pages.
How: w3lib normalises case, percent-encoding, dot segments and the order of the query. Default ports are
removed, and so are parameters that cannot name a page (`core.url_parameters`). Hosts become ASCII without
the transitional mappings of UTS 46, as in browsers: `faß.de` and `fass.de` are two hosts. A fragment is a
place in a page and is removed, unless it begins with `#!` or `#/`: then it names a page of a single-page
application. It is not normalised further, as only the application knows what it means.
rel=canonical is a hint, not an identity: it is kept beside the page's own address, and a decision accepts it
only if the texts agree (`core.decision.decider`).
courlan is not used: its list also removes `cid`, `uid`, `source` and `keyword`, which name pages on many
sites.
Invariant: `canonicalise` is idempotent.
Source: RFC 3986, section 6; RFC 6596 (rel=canonical); UTS 46, section 4 (hosts).
"""

import re
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

import idna
import xxhash
from w3lib.url import canonicalize_url

from dedup_service.core.errors import RecordError
from dedup_service.core.size_limits import MAX_URL_CHARS
from dedup_service.core.url_parameters import without_tracking

DEFAULT_PORTS = {"http": 80, "https": 443}
"""Port by scheme of a Web address."""

# URLs that normalisation would not change, such as those of most articles, recognised in a tenth of the
# time.
_LABEL = r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*"
_CANONICAL = re.compile(rf"https?://{_LABEL}(?:\.{_LABEL})+(?:/[a-zA-Z0-9_-]+)+(?:\.[a-z]+)?")
_PATH_SESSION = re.compile(r";(?:jsessionid|phpsessid)=[^/;?]*", re.IGNORECASE)
_ROUTE = re.compile(r"(?:!|/)(?!/?$).*", re.DOTALL)
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
_HOME_PATH = re.compile(r"/(?:(?:index|default|home|main)\.\w{2,5})?", re.IGNORECASE)
_VARIANT_HOST = re.compile(r"(?:www|m|wap|mobile)\.(?=[^.]+\.)")
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*|[0-9a-f.]*:[0-9a-f:.]*", re.ASCII)


def canonicalise(url: str) -> str:
    """Return the address that identifies the page at `url`, an absolute http or https address.

    Raises RecordError if it is not one, or has no usable host or port.

    >>> canonicalise("HTTPS://News.Example.com:443/a/../b?utm_source=x&id=7#top")
    'https://news.example.com/b?id=7'
    """
    if len(url) <= MAX_URL_CHARS and _CANONICAL.fullmatch(url):
        return url
    try:
        parts = _split(url)
        parts = parts._replace(netloc=_netloc(parts), fragment=_route(parts.fragment))
        parts = parts._replace(path=_PATH_SESSION.sub("", parts.path))
        parts = urlsplit(canonicalize_url(urlunsplit(parts), keep_fragments=True))
        parts = parts._replace(query=without_tracking(parts.query))
        return canonicalize_url(urlunsplit(parts), keep_fragments=True)
    except (ValueError, UnicodeError) as error:
        raise RecordError(f"invalid URL {_shown(url)}: {error}; give an absolute http or https URL") from error


def url_hash(canonical_url: str) -> int:
    """Return the unsigned 64-bit key under which states and indexes store a canonical URL."""
    return xxhash.xxh3_64_intdigest(canonical_url.encode("utf-8", "surrogatepass"))


def host_hash(canonical_url: str) -> int:
    """Return the unsigned 32-bit key of the host, with its port, of a canonical URL."""
    host = canonical_url.partition("://")[2].partition("/")[0]
    return xxhash.xxh3_64_intdigest(host.encode("utf-8", "surrogatepass")) >> 32


def url_and_host_hash(canonical_url: str) -> tuple[int, int]:
    """Return `url_hash` and `host_hash` of a canonical URL, in two thirds of the time of both.

    Example:
        >>> url_and_host_hash("http://a.test/b") == (url_hash("http://a.test/b"), host_hash("http://a.test/b"))
        True
    """
    encoded = canonical_url.encode("utf-8", "surrogatepass")  # only what is ASCII has bytes of ASCII in it
    host = encoded.partition(b"://")[2].partition(b"/")[0]
    return xxhash.xxh3_64_intdigest(encoded), xxhash.xxh3_64_intdigest(host) >> 32


class PageAddresses(NamedTuple):
    """The addresses of a page. claimed_url: see `page_addresses`; None if the page claims no other address."""

    canonical_url: str
    claimed_url: str | None = None


def page_addresses(url: str, link: str | None = None) -> PageAddresses:
    """Return the addresses of a page that was fetched from `url` and names `link` as rel=canonical.

    The link is resolved against `url`. It is no claim if it is invalid, if it names another host (apart from a
    leading `www.` or `m.`), or if it names a home page and `url` does not: many sites point every page there.
    Raises RecordError if `url` itself is invalid.

    >>> page_addresses("https://a.test/1/print#top", "/1?utm_source=x")
    PageAddresses(canonical_url='https://a.test/1/print', claimed_url='https://a.test/1')
    """
    own = canonicalise(url)
    link = (link or "").strip()
    if not link or len(link) > MAX_URL_CHARS:
        return PageAddresses(own)
    try:
        named = canonicalise(urljoin(own, link))
    except (RecordError, ValueError):
        return PageAddresses(own)
    here, there = urlsplit(own), urlsplit(named)
    if _bare_host(here) != _bare_host(there) or (_is_home(there) and not _is_home(here)) or named == own:
        return PageAddresses(own)
    return PageAddresses(own, named)


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
        host = _ascii_host(host)
    if not _HOST.fullmatch(host):
        raise ValueError(f"the host is {parts.hostname!r}")
    host = f"[{host}]" if ":" in host else host
    port = parts.port
    return host if port is None or port == DEFAULT_PORTS[parts.scheme] else f"{host}:{port}"


def _ascii_host(host: str) -> str:
    """Return the ASCII form of a host: mapped by UTS 46 without transitional mappings, then Punycode by label.

    Labels that IDNA 2008 refuses and browsers accept, such as symbols, are encoded all the same. Raises
    ValueError for characters that no host may contain.
    """
    mapped = idna.uts46_remap(host, std3_rules=False, transitional=False).removesuffix(".")
    return ".".join(
        label if label.isascii() else f"xn--{label.encode('punycode').decode('ascii')}" for label in mapped.split(".")
    )


def _route(fragment: str) -> str:
    """Return the fragment if it names a page of a single-page application, "" otherwise.

    `#!`, `#/` and `#!/` name its first page, which is the address without them.
    """
    return _ESCAPE.sub(lambda escape: escape[0].upper(), fragment) if _ROUTE.fullmatch(fragment) else ""


def _bare_host(parts: SplitResult) -> str:
    return _VARIANT_HOST.sub("", parts.netloc, count=1)


def _is_home(parts: SplitResult) -> bool:
    return _HOME_PATH.fullmatch(parts.path or "/") is not None and not parts.query and not parts.fragment


def _shown(url: str) -> str:
    return repr(url if len(url) <= 120 else url[:119] + "…")
