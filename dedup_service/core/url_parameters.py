"""Query parameters that cannot name a page: those of campaigns, clicks and sessions.

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
from urllib.parse import unquote_plus


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
