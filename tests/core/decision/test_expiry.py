"""Entries expire by count and by age, as the log says and no clock; what expired never matches again."""

from collections.abc import Sequence
from itertools import pairwise

from dedup_service.core.decision.expiry import ExpiryReason
from dedup_service.core.decision.replica import Outcome, Replica
from dedup_service.core.log_records import (
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    Source,
    TimeRecord,
)
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from tests.page_names import NamesInMemory

SPACE_ID = "a-space"
RULE = rule_for("body", k=0)


def policy(keep: Keep = KEEP_ALL) -> PolicyRecord:
    """A policy that calls pages of one fingerprint duplicates."""
    return PolicyRecord(Policy(RULE, Action.FLAG, SPACE_ID, keep=keep), log="a-log")


def page(offset: int, address: int, text: int) -> PageRecord:
    """A page at one of some addresses, with one of some texts, which are all far from each other."""
    url = f"http://a.example/{address}"
    value = text * 0x9E3779B97F4A7C15 % (1 << 64)
    prepared = PreparedPage(Page(url=url, canonical_url=url, id=url), Fingerprint(None, value), value)
    return PageRecord(Source("pages", 0, offset), prepared, SPACE_ID)


def read(replica: Replica, log: Sequence[tuple[int, LogRecord]]) -> list[tuple[str, int | None] | None]:
    """Apply numbered records and return the verdicts with the sequences that they name."""
    return [shown(outcome) for outcome in replica.apply_many(log)]


def shown(outcome: Outcome | None) -> tuple[str, int | None] | None:
    """Return the verdict of an outcome and the sequence that it names."""
    return None if outcome is None or outcome.verdict is None else (outcome.verdict.kind.value, outcome.original)


def test_one_too_many_lets_the_earliest_leave() -> None:
    """Of three pages kept two stay; a copy of the first is unique, and lets the second leave."""
    log = list(enumerate([policy(Keep(max_pages=2)), page(0, 1, 1), page(1, 2, 2), page(2, 3, 3), page(3, 4, 1)]))
    replica = Replica(NamesInMemory())
    assert read(replica, log)[1:] == [("unique", None)] * 4
    assert [entry.sequence for entry in replica.held().entries()] == [3, 4]
    assert replica.expired == {ExpiryReason.COUNT: 2, ExpiryReason.AGE: 0}


def test_an_expired_address_is_new() -> None:
    """A page of an address that expired is unique, and neither unchanged nor updated."""
    log = list(enumerate([policy(Keep(max_pages=1)), page(0, 1, 1), page(1, 2, 2), page(2, 1, 1)]))
    assert read(Replica(NamesInMemory()), log)[-1] == ("unique", None)


def test_the_log_alone_says_how_late_it_is() -> None:
    """A page leaves when the log's time is more than the age after its own, and an earlier time has no effect."""
    first = [policy(Keep(max_age_minutes=60)), TimeRecord(1_000), page(0, 1, 1)]
    for minute, verdict in ((1_060, "duplicate"), (1_061, "unique")):
        log = [*first, TimeRecord(minute), TimeRecord(7), page(1, 2, 1)]
        replica = Replica(NamesInMemory())
        assert read(replica, list(enumerate(log)))[-1][0] == verdict
        assert replica.expired[ExpiryReason.AGE] == (verdict == "unique")


def test_pages_before_the_first_time_came_with_it() -> None:
    """A log without time records keeps all; the age of its pages counts from the first one."""
    log = [policy(), page(0, 1, 1), policy(Keep(max_age_minutes=60)), page(1, 2, 1), TimeRecord(5_000), page(2, 3, 1)]
    assert [verdict for verdict in read(Replica(NamesInMemory()), list(enumerate(log))) if verdict][1:] == [
        ("duplicate", 1)
    ] * 2
    later = [*log, TimeRecord(5_061), page(3, 4, 1)]
    assert read(Replica(NamesInMemory()), list(enumerate(later)))[-1] == ("unique", None)


def test_a_backlog_leaves_with_the_pages_that_follow() -> None:
    """Lower bounds take effect a few entries a page, so no page waits for a million of them."""
    log: list[LogRecord] = [policy(), *(page(number, number, 10 + number) for number in range(100))]
    log += [policy(Keep(max_pages=10)), *(page(100 + number, 0, 10) for number in range(12))]
    replica, sizes = Replica(NamesInMemory()), []
    for sequence, record in enumerate(log):
        replica.apply(sequence, record)
        sizes.append(len(replica))
    assert sizes[100:102] == [100, 100]
    # The first visit finds its page gone and is kept again.
    assert [earlier - later for earlier, later in pairwise(sizes[101:])][:3] == [8, 9, 9]
    assert sizes[-1] == 10


def test_what_expired_does_not_come_back() -> None:
    """Bounds that are raised later bring no entry back, in the replica or in one that goes on from its state."""
    log = [policy(Keep(max_pages=1)), page(0, 1, 1), page(1, 2, 2), policy(), page(2, 3, 1)]
    names = NamesInMemory()
    replica = Replica(names)
    read(replica, list(enumerate(log[:4])))
    restored = Replica(names, rows=replica.held(), state=replica.state())
    for one in (replica, restored):
        assert shown(one.apply(4, log[4])) == ("unique", None)
        assert [entry.sequence for entry in one.held().entries()] == [2, 4]
        assert one.expired_up_to == 1
