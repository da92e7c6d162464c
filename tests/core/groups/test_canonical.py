"""Which page stands for a group, under each policy."""

import random

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.groups.canonical import CanonicalPolicy, canonical_policy, host_of, is_on_host, policy_of_log
from dedup_service.core.groups.member import GroupMember, Removal
from dedup_service.core.verdict import VerdictKind


def member(sequence: int, url: str = "https://a.example/1", **more: object) -> GroupMember:
    """A page of a group."""
    values = {"sequence": sequence, "id": url, "url": url, "canonical_url": url, "kind": VerdictKind.DUPLICATE}
    return GroupMember(**(values | more))  # type: ignore[arg-type]


def chosen(policy: str | CanonicalPolicy, members: list[GroupMember]) -> int | None:
    """The sequence of the page that stands for `members`, the same in any order."""
    named = canonical_policy(policy) if isinstance(policy, str) else policy
    results = set()
    for seed in range(5):
        best, place = None, None
        for page in random.Random(seed).sample(members, len(members)):
            own = named.place(page)
            if own is not None and named.is_before(own, place):
                best, place = page.sequence, own
        results.add(best)
    assert len(results) == 1
    return results.pop()


def test_the_earliest_page_stands_for_a_group() -> None:
    """Whatever else is known of it."""
    assert chosen("earliest", [member(3, letters=900), member(2, letters=5), member(7)]) == 2


def test_the_longest_page_has_the_most_letters() -> None:
    """Of equal lengths, the earliest; a length that is not known comes after every other."""
    assert chosen("longest", [member(1, letters=5), member(2, letters=9), member(3, letters=9)]) == 2
    assert chosen("longest", [member(1), member(2, letters=0)]) == 2
    assert chosen("longest", [member(2), member(1)]) == 1


def test_preferred_hosts_come_in_their_order() -> None:
    """A host below one counts as that one; then the earliest. Pages elsewhere come last."""
    pages = [member(1, "https://c.example/"), member(2, "https://www.b.example/"), member(3, "https://a.example/")]
    assert chosen("hosts:a.example,b.example", pages) == 3
    assert chosen("hosts: B.Example ,a.example", pages) == 2
    assert chosen("hosts:z.example", pages) == 1
    assert chosen("hosts:example.org", [member(1, "https://notexample.org/"), member(2, "https://example.org/")]) == 2


def test_a_complete_page_has_a_title_and_the_most_text_of_its_own() -> None:
    """A longer page is worse if what is longer is the own text of its host."""
    assert chosen("complete", [member(1, letters=900), member(2, letters=10, title="A title")]) == 2
    framed, alone = member(1, letters=1000, host_sentences=0.5), member(2, letters=600, host_sentences=0.0)
    assert chosen("complete", [framed, alone]) == 2
    assert chosen("longest", [framed, alone]) == 1
    assert chosen("complete", [member(1), member(2, letters=3)]) == 2


def test_equal_texts_differ_by_share_of_main_text_then_date_then_host_sentences() -> None:
    """In this order; what is not known counts as worst, and neither counts before a longer text of its own."""
    text = {"letters": 900, "title": "A title"}
    assert chosen("complete", [member(1, **text), member(2, **text, text_percent=0)]) == 2
    assert chosen("complete", [member(1, **text, text_percent=40), member(2, **text, text_percent=70)]) == 2
    dated = member(2, **text, text_percent=40, date="2024-03-05")
    assert chosen("complete", [member(1, **text, text_percent=40), dated]) == 2
    assert chosen("complete", [member(1, **text, text_percent=41), dated]) == 1
    earlier = member(3, **text, text_percent=40, date="1999-01-01")
    assert chosen("complete", [dated, earlier]) == 2  # whether it has a date counts, not which
    framed = member(1, letters=1800, host_sentences=0.5, title="A title")
    assert chosen("complete", [framed, member(2, **text, host_sentences=0.0)]) == 2
    longer = member(2, letters=901, title="A title")
    assert chosen("complete", [member(1, **text, text_percent=100, date="2024-03-05"), longer]) == 2


def test_pages_that_are_gone_stand_for_nothing() -> None:
    """One with another text by now, or that a person moved, stands for a group only if no other can."""
    gone = [member(1, removed=Removal.RETRACTION), member(2, removed=Removal.UNWRITTEN)]
    assert chosen("earliest", gone) is None
    assert chosen("earliest", [*gone, member(3, removed=Removal.UPDATE)]) == 3
    assert chosen("earliest", [*gone, member(3, removed=Removal.CORRECTION), member(4)]) == 4


def test_keys_that_cannot_be_compared_are_named() -> None:
    """The error is of the configuration."""
    policy = CanonicalPolicy("mine:key", lambda page: None if page.sequence == 1 else 5)
    with pytest.raises(ConfigurationError, match=r"mine:key.*cannot be compared"):
        chosen(policy, [member(1), member(2)])


@pytest.mark.parametrize("text", ["", "newest", "hosts:", "hosts:a/b", "hosts:a.example,,b", "hosts:a b", "hosts:u@a"])
def test_what_is_no_policy_is_refused(text: str) -> None:
    """The error says what there is, or what is no host."""
    with pytest.raises(ConfigurationError):
        canonical_policy(text)


def test_hosts_are_compared_as_canonical_urls_have_them() -> None:
    """In ASCII, with the port if it is not the usual one; a page without a Web address is on no host."""
    assert host_of("Bücher.example:8080") == "xn--bcher-kva.example:8080"
    assert is_on_host(member(1, "https://news.a.example/1"), "a.example")
    assert not is_on_host(member(1, "https://a.example:8080/1"), "a.example")
    assert not is_on_host(member(1, "nothing"), "a.example")
    assert not is_on_host(member(1, "https://[broken/"), "a.example")


def test_a_policy_that_leaves_a_message_no_room_is_refused() -> None:
    """Each message about a group names it; `groups` alone takes any number of hosts."""
    hosts = ",".join(f"h{number}.example" for number in range(8000))
    assert canonical_policy(f"hosts:{hosts}").place(member(1)) is not None
    with pytest.raises(ConfigurationError, match="name fewer hosts"):
        policy_of_log(f"hosts:{hosts}")
    assert policy_of_log(f"hosts:{hosts[:30_000].rpartition(',')[0]}").text.startswith("hosts:h0.example")


def test_the_first_host_that_a_page_is_on_counts() -> None:
    """Of any hosts, some below others and some named twice, whatever the host of the page."""
    rng = random.Random(3)
    names = ["a.example", "b.a.example", "c.b.a.example", "ba.example", "example", "a.example:8080", "[::1]", "1.2.3.4"]
    for _ in range(200):
        hosts = rng.choices(names, k=rng.randint(1, 6))
        on = {name: member(1, f"http://{rng.choice(['', 'x.', 'x.y.'])}{name}/1") for name in names}
        for page in [*on.values(), member(1, "nothing")]:
            expected = next((place for place, host in enumerate(hosts) if is_on_host(page, host)), len(hosts))
            assert canonical_policy(f"hosts:{','.join(hosts)}").key(page) == expected
