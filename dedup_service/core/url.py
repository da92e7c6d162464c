"""Canonical URLs: one address for one page, and which other address a page may claim.

Goal: all visits of a page have the same `canonical_url`, and two pages never do. When in doubt, there are
two pages.
How: w3lib normalises case, percent-encoding, dot segments and the order of the query. Default ports are
removed, and so are parameters that cannot name a page (the table below). Hosts become ASCII without
the transitional mappings of UTS 46, as in browsers: `faß.de` and `fass.de` are two hosts. A fragment is a
place in a page and is removed, unless it begins with `#!` or `#/`: then it names a page of a single-page
application. It is not normalised further, as only the application knows what it means.
rel=canonical is a hint, not an identity: it is kept beside the page's own address, and a decision accepts it
only if the texts agree (`core.decision.decider`).
courlan is not used: its list also removes `cid`, `uid`, `source` and `keyword`, which name pages on many
sites.
Invariant: `canonicalise` is idempotent.
Source: RFC 3986, section 6; RFC 6596 (rel=canonical); UTS 46, section 4 (hosts).

Query parameters that cannot name a page: those of campaigns, clicks and sessions.

Goal: two pages never lose the parameter that tells them apart. A parameter that is removed by mistake gives
two pages one address, and the later page replaces the earlier. A parameter that stays by mistake costs one
comparison: the second visit has the same text and is a `duplicate`. So a parameter is removed on one of three
grounds only:

- Its name was coined by one product and means nothing else (`gclid`, `utm_source`). A prefix is not enough:
  `pk_id` is a primary key, `itm_no` an item number, `utm_zone` a zone of a map.
- Its name may mean something else, but its value has the form that the product gives it (`spm=a.b.c.d` of
  Alibaba, a random `sessionid`). `scm=git`, `sessionid=101` and `pk_source=12` stay.
- Its name may mean something else, but it comes with its companion (`cfid` with `cftoken` of ColdFusion).

Names are compared without case, values as decoded. A name that is not here stays, such as `cid`, `from`,
`ref`, `source`, `s_cid` and `uid`.
Source: the documentation of each product, named in the table.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import SplitResult, unquote_plus, urljoin, urlsplit, urlunsplit

import idna
import xxhash
from w3lib.url import canonicalize_url

from dedup_service.core.errors import RecordError
from dedup_service.core.size_limits import MAX_URL_CHARS


@dataclass(frozen=True, slots=True)
class TrackingRule:
    """Removes the parameters whose whole name is in `names`, a regular expression in lower case.

    value: the form of the whole value, a regular expression without case; None if the name is enough.
    beside: names, as a regular expression; one of them must be in the same query. None if that does not matter.
    """

    names: str
    value: str | None = None
    beside: str | None = None


WORD = r"(?!(?=.*[0-9])[0-9a-f-]+$).*"
"""Not a number, a hash or a UUID, which are the forms of a primary key."""

DOTTED = r"[\w-]+(?:\.[\w-]*){3,}"
"""At least four parts: site, page, block, position; a version number has fewer."""

SESSION = r"(?=.*[0-9])(?=.*[a-z])[0-9a-z]{32,}"
"""Random letters and digits: shorter are record ids (MongoDB: 24), hyphens are in slugs and UUIDs."""

TRACKING_RULES = (
    # Google: campaigns, clicks, links between domains. Two values are checked, as both names are short.
    TrackingRule(
        "utm_(?:source|medium|campaign|term|content|id|name|reader|referrer"
        "|source_platform|creative_format|marketing_tactic)"
    ),
    TrackingRule("gclid|gclsrc|dclid|gbraid|wbraid"),
    TrackingRule("_ga", value=r"(?:ga)?[0-9]+\.[0-9.-]+"),
    TrackingRule("_gl", value=r"[0-9]+\*.+"),
    # Clicks: Microsoft, Meta, Twitter, TikTok, Yandex. `igsh` is Instagram's share token.
    TrackingRule("msclkid|fbclid|igshid|twclid|ttclid|yclid"),
    TrackingRule("igsh", value=r"[\w+/-]{12,}=*"),
    # Matomo. `pk_` is its old prefix, and everybody's prefix for a primary key.
    TrackingRule("mtm_(?:campaign|keyword|kwd|source|medium|content|cid|group|placement)"),
    TrackingRule("pk_(?:campaign|cpn|keyword|kwd|source|medium|content|cid)", value=WORD),
    # Internal campaigns, named after Google's. `itm_` is also an item.
    TrackingRule("itm_(?:source|medium|campaign|term|content)", value=WORD),
    # HubSpot (advertisements, mails), Marketo, Omeda Olytics.
    TrackingRule("hsa_(?:acc|cam|grp|ad|src|tgt|kw|mt|net|ver|la|ol)|_hs(?:enc|mi)|mkt_tok|oly_(?:anon|enc)_id"),
    # Mailchimp: ten hexadecimal digits. Vero writes both of its parameters.
    TrackingRule("mc_[ce]id", value=r"(?=.*[a-f])[0-9a-f]{10}"),
    TrackingRule("vero_id", beside="vero_conv"),
    TrackingRule("vero_conv", beside="vero_id"),
    # Alibaba: `scm` is also a kind of software, `spm` a method of statistics.
    TrackingRule("spm|scm", value=DOTTED),
    # Bilibili: where a visitor came from, who shared.
    TrackingRule("spm_id_from"),
    TrackingRule("vd_source", value=r"[0-9a-f]{32}"),
    TrackingRule("share_source|share_medium", value=WORD),
    # Baidu statistics: the source is required, the other four depend on it.
    TrackingRule("hmsr", value=WORD),
    TrackingRule("hmpl|hmcu|hmkw|hmci", beside="hmsr"),
    # WeChat: a redirect, and a key of a hundred letters.
    TrackingRule("wechat_redirect"),
    TrackingRule("nsukey", value=r".{32,}"),
    # Sessions: Java, PHP and ASP by their reserved names; ColdFusion by the pair; any other by its value.
    TrackingRule("jsessionid|phpsessid|aspsessionid[a-z]*"),
    TrackingRule("sessionid", value=SESSION),
    TrackingRule("cfid", beside="cftoken"),
    TrackingRule("cftoken", beside="cfid"),
)


class _Compiled:
    """A rule with its regular expressions compiled."""

    def __init__(self, rule: TrackingRule) -> None:
        self.value = None if rule.value is None else re.compile(rule.value, re.IGNORECASE | re.DOTALL)
        self.beside = None if rule.beside is None else re.compile(rule.beside)

    def accepts(self, value: str) -> bool:
        """Whether an encoded value has the form that the product gives it."""
        return self.value is None or self.value.fullmatch(unquote_plus(value)) is not None

    def has_companion(self, names: Iterable[str]) -> bool:
        """Whether the query has the other parameter of the product. names: of the whole query, in lower case."""
        return self.beside is None or any(map(self.beside.fullmatch, names))


_RULES = tuple(map(_Compiled, TRACKING_RULES))
_NAMES = re.compile("|".join(f"({rule.names})" for rule in TRACKING_RULES), re.IGNORECASE)


def without_tracking(query: str) -> str:
    """Return the query of a URL without the parameters that cannot name a page; the others are untouched.

    >>> without_tracking("id=7&scm=git&utm_source=mail")
    'id=7&scm=git'
    """
    pairs = [(pair, *pair.partition("=")[::2]) for pair in query.split("&")]
    known = [_NAMES.fullmatch(name) for _, name, _ in pairs]
    if not any(known):
        return query
    names = {name.lower() for _, name, _ in pairs}
    rules = {_rule(found) for found in known if found is not None}
    in_force = {rule for rule in rules if rule.has_companion(names)}

    def stays(found: re.Match[str] | None, value: str) -> bool:
        if found is None or ";" in value:  # it may separate, too
            return True
        return _rule(found) not in in_force or not _rule(found).accepts(value)

    return "&".join(pair for (pair, _, value), found in zip(pairs, known, strict=True) if stays(found, value))


def _rule(found: re.Match[str]) -> _Compiled:
    """Return the rule whose names matched."""
    assert found.lastindex is not None, "each alternative of the expression is a group"
    return _RULES[found.lastindex - 1]


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
    """Return `url_hash` of a canonical URL, and an unsigned 64-bit hash of its host, whose upper half is `host_hash`.

    Example:
        >>> url, host = url_and_host_hash("http://a.test/b")
        >>> (url, host >> 32) == (url_hash("http://a.test/b"), host_hash("http://a.test/b"))
        True
    """
    encoded = canonical_url.encode("utf-8", "surrogatepass")  # only what is ASCII has bytes of ASCII in it
    host = encoded.partition(b"://")[2].partition(b"/")[0]
    return xxhash.xxh3_64_intdigest(encoded), xxhash.xxh3_64_intdigest(host)


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
