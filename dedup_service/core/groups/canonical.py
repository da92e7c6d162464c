"""Which page stands for a group: a stated policy.

A policy gives each page a key, and the page with the least key stands for its group; among equal keys, the earliest.
The key depends on that page alone, so the choice depends neither on the order in which pages are looked at nor on
how many are in memory, and a page that joins later is compared with one other. Nothing here changes a verdict.

Before any policy: a page that was retracted or never passed on never stands for a group; one whose URL has another
text by now, or that a person called a duplicate of a page elsewhere, does so only if all others are such, too.

What is not known of a page (a length, where only its record is left) comes after what is known; so of a group of which
nothing is known, the earliest page is chosen.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dedup_service.core.errors import ConfigurationError, RecordError
from dedup_service.core.groups.member import GroupMember
from dedup_service.core.url import canonicalise

POLICIES = "earliest, longest, complete, hosts:HOST,HOST…"

CanonicalKey = Callable[[GroupMember], Any]
"""Gives a page what it is compared by; the least one is chosen."""


@dataclass(frozen=True, slots=True)
class CanonicalPolicy:
    """Chooses the page that stands for a group.

    text: the policy as it was stated. key: of a page. asks_host_text: whether the key needs `host_sentences`.
    """

    text: str
    key: CanonicalKey
    asks_host_text: bool = False

    def place(self, member: GroupMember) -> tuple[bool, Any, int] | None:
        """Return what a page is compared by, less is better; None if it cannot stand for a group.

        ConfigurationError if a function of the user's fails.
        """
        if member.removed is not None and member.removed.is_gone:
            return None
        return member.removed is not None, self.key(member), member.sequence

    def is_before(self, place: tuple[bool, Any, int], other: tuple[bool, Any, int] | None) -> bool:
        """Return whether the page at `place` is chosen rather than the other; None: there is no other.

        ConfigurationError if the keys of the two cannot be compared.
        """
        try:
            return other is None or place < other
        except TypeError as error:
            raise ConfigurationError(
                f"policy {self.text}: the keys {place[1]!r} and {other and other[1]!r} cannot be compared: have the "
                "function return numbers, texts, or tuples of one form"
            ) from error


def _earliest(member: GroupMember) -> int:
    return member.sequence


def _longest(member: GroupMember) -> float:
    return 1.0 if member.letters is None else -float(member.letters)


def _complete(member: GroupMember) -> tuple[bool, float, int, bool, float]:
    own, percent = member.own_letters, member.text_percent
    return (
        not member.title.strip(),
        1.0 if own is None else -own,
        1 if percent is None else -percent,
        member.date is None,
        member.host_sentences or 0.0,
    )


_NO_HOST = re.compile(r"[/?#@\\]")
EARLIEST = CanonicalPolicy("earliest", _earliest)
_BY_NAME = {
    "earliest": EARLIEST,
    "longest": CanonicalPolicy("longest", _longest),
    "complete": CanonicalPolicy("complete", _complete, asks_host_text=True),
}


def canonical_policy(text: str) -> CanonicalPolicy:
    """Return the policy that `text` states; ConfigurationError if it states none.

    >>> canonical_policy("hosts: A.example,b.example").text
    'hosts:a.example,b.example'
    """
    name, colon, rest = text.strip().partition(":")
    if name == "hosts" and colon:
        try:
            return _preferring([host_of(host) for host in rest.split(",")])
        except ConfigurationError as error:
            raise ConfigurationError(f"policy {text!r}: {error}") from error
    if text.strip() in _BY_NAME:
        return _BY_NAME[text.strip()]
    raise ConfigurationError(f"{text!r} is no policy of canonical pages: give one of {POLICIES}, or MODULE:FUNCTION")


MAX_POLICY_BYTES = 1 << 16
"""Of the policy of a log: some 3,000 hosts. Each message of the topic `canonical` has it, beside names of pages."""


def policy_of_log(text: str) -> CanonicalPolicy:
    """Return the policy that a log may have; ConfigurationError for any other, such as a function of the user's.

    >>> policy_of_log("longest").text
    'longest'
    """
    if (size := len(text.encode("utf-8", "replace"))) > MAX_POLICY_BYTES:
        raise ConfigurationError(
            f"the policy of canonical pages has {size:,} bytes; a log takes {MAX_POLICY_BYTES:,}, since each message "
            "about a group has it: name fewer hosts"
        )
    try:
        return canonical_policy(text)
    except ConfigurationError as error:
        if text.strip().startswith("hosts:"):
            raise
        raise ConfigurationError(
            f"a log cannot have {text!r} as its policy of canonical pages, since all who read it must choose alike: "
            f"give one of {POLICIES}. A function is for `twinsieve groups --canonical`"
        ) from error


def is_known_policy(text: str) -> bool:
    """Return whether `policy_of_log` takes a policy; one of a log may be written by hand or by a later twinsieve.

    >>> is_known_policy("longest"), is_known_policy("newest")
    (True, False)
    """
    try:
        policy_of_log(text)
    except ConfigurationError:
        return False
    return True


def host_of(text: str) -> str:
    """Return a host as canonical URLs have it, with its port if that is not the usual one.

    Raises ConfigurationError if `text` is no host.

    >>> host_of("News.Example")
    'news.example'
    """
    name = text.strip()
    if not name or _NO_HOST.search(name):
        raise ConfigurationError(f"{text!r} is no host: give a name alone, such as news.example")
    try:
        return canonicalise(f"http://{name}/").removeprefix("http://").removesuffix("/")
    except RecordError as error:
        raise ConfigurationError(f"{text!r} is no host, such as news.example: {error}") from error


def is_on_host(member: GroupMember, host: str) -> bool:
    """Return whether a page is on `host` (from `host_of`) or on a host below it, as www.news.example is."""
    return member.host == host or member.host.endswith(f".{host}")


def _preferring(hosts: list[str]) -> CanonicalPolicy:
    places = {host: place for place, host in reversed([*enumerate(hosts)])}  # of one that is named twice, the first

    def place(member: GroupMember) -> int:
        above, best = member.host, len(hosts)  # a log may name thousands: those that a page may be on are looked up
        while above:
            best = min(best, places.get(above, best))
            above = above.partition(".")[2]
        return best

    return CanonicalPolicy(f"hosts:{','.join(hosts)}", place)
