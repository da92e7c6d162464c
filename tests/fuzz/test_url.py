"""Addresses: any string is canonicalised or refused, and what comes out is canonical."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import RecordError
from dedup_service.core.size_limits import MAX_URL_CHARS
from dedup_service.core.url import TRACKING_RULES, canonicalise, host_hash, page_addresses, url_hash, without_tracking
from dedup_service.runtime.readers.record import addresses_at
from tests.fuzz.budget import within
from tests.fuzz.examples import fuzzed
from tests.fuzz.mutation import hostile, mutated_text

MAX_GROWTH = 12
"""A character of four bytes in UTF-8 is percent-encoded as twelve."""

NAMES = sorted({name for rule in TRACKING_RULES for name in rule.names.split("|") if name.isidentifier()})
PIECES = (
    *"/?#&=;:@%[].\\ \t\n+",
    *("http://", "HTTPS://", "//", "/../", "%2e%2E/", "%00", "%E4%B8", "xn--", "#!", "#/", ";jsessionid=a"),
    *(":443", ":0"),
    *("图书馆", "ß", "\u0130", "\u200d", "\u3002", "\ufeff", "\ud800", "www.", "m.", "[::1]", "127.1", ".."),
    *("index.html",),
    *NAMES,
)
VALID = st.sampled_from(
    [
        "https://news.example.com/a/b.html?id=7&utm_source=x#top",
        "http://www.example.co.uk:8080/%E4%B8%AD?q=a+b&cfid=1&cftoken=2&spm=a.b.c.d",
        "https://例え.テスト/パス?キー=値#!/route",
        "http://[2001:db8::1]:80/;jsessionid=1?sessionid=" + "a1" * 16,
    ]
)
ADDRESSES = st.one_of(mutated_text(VALID, PIECES), st.lists(st.sampled_from(PIECES) | st.text(max_size=4)).map("".join))
LONG = hostile("url", MAX_URL_CHARS).map(str)


def check(url: str, link: str | None = None) -> None:
    """What must hold for a page at `url` that names `link` as canonical."""
    with within(url, link):
        try:
            canonical = canonicalise(url)
        except RecordError:
            with pytest.raises(RecordError):
                page_addresses(url, link)
            assert addresses_at(url, link) == (url.strip(), None)
            return
        own, claimed = page_addresses(url, link)
    assert own == canonical
    check_canonical(canonical)
    assert canonical.startswith(("http://", "https://"))
    assert len(canonical) <= MAX_GROWTH * len(url) + 1
    assert 0 <= url_hash(canonical) < 1 << 64
    assert 0 <= host_hash(canonical) < 1 << 32
    if claimed is not None:
        assert claimed != own
        check_canonical(claimed)


def check_canonical(address: str) -> None:
    """What must hold for any canonical address; percent-encoded, it may be over the limit of what is read."""
    if len(address) <= MAX_URL_CHARS:
        assert canonicalise(address) == address


def check_query(query: str) -> None:
    """What must hold for the query of any address."""
    with within(query):
        left = without_tracking(query)
    assert without_tracking(left) == left
    remaining = iter(query.split("&"))
    assert left == "" or all(pair in remaining for pair in left.split("&")), "the others are untouched, in their order"


@fuzzed(50)
@given(url=ADDRESSES)
def test_any_address_is_canonicalised_or_refused(url: str) -> None:
    """Canonicalisation is idempotent, its result is bounded, and no string raises anything else."""
    check(url)


@fuzzed(30)
@given(url=VALID, link=ADDRESSES)
def test_any_link_is_a_claim_or_none(url: str, link: str) -> None:
    """No rel=canonical raises, and a claim is a canonical address."""
    check(url, link)


@fuzzed(10)
@given(url=LONG, link=LONG)
def test_long_hostile_addresses_are_cheap(url: str, link: str) -> None:
    """Units that would take quadratic time, up to the limit and beyond, alone and joined."""
    check(url)
    check("http://a.test/", link)


@fuzzed(40)
@given(query=st.lists(st.sampled_from([*NAMES, *"&=;%.-*", "a1" * 16, "1"]) | st.text(max_size=3)).map("".join))
def test_any_query_loses_only_whole_parameters(query: str) -> None:
    """What is left is in its order, and loses nothing a second time."""
    check_query(query)
