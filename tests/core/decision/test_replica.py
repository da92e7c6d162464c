"""The replica: the log alone decides its state, from any starting point and with repeated records."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import HostText
from dedup_service.core.decision.replica import Outcome, Replica
from dedup_service.core.errors import StateError
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.log_records import (
    CorrectionRecord,
    ExpiredRecord,
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    Source,
    UnreadableRecord,
    UnwrittenRecord,
)
from dedup_service.core.rules.guards import NO_GUARDS, Guards
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import PROFILES, rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.url import host_hash
from dedup_service.core.verdict import Action, VerdictKind
from tests.made_evidence import evidence_of
from tests.page_names import NamesInMemory
from tests.runtime.embedded.prepared import SPACE_ID, prepared

LAYOUT = IndexLayout(slots=2, window=3)
FIRST = PolicyRecord(Policy(rule_for("body"), Action.FLAG, SPACE_ID, LAYOUT), initial=True, log="a-log")

GUARDED = replace(rule_for("body"), guards=Guards(max_pages=2, max_hosts=1, max_titles=1))
LENIENT = replace(GUARDED, guards=Guards(max_pages=6, max_hosts=0, max_titles=0))
UNGUARDED = replace(GUARDED, guards=NO_GUARDS)
KEYS_ALONE = MatchRule(keys=True, verified=rule_for().verified)


def page(
    offset: int, url: str, story: int, version: int = 0, *, space: str = SPACE_ID, partition: int = 0
) -> PageRecord:
    """A page with a story, at an offset of `pages`."""
    return PageRecord(Source("pages", partition, offset), prepared(url, story, version=version), space)


def claiming(record: PageRecord, claimed: str | None) -> PageRecord:
    """The same record, of a page that names `claimed` as canonical."""
    prepared = replace(record.prepared, page=replace(record.prepared.page, claimed_url=claimed))
    return replace(record, prepared=prepared)


def read(replica: Replica, records: Sequence[LogRecord], start: int = 0) -> list[Outcome | None]:
    """Apply records at every second offset, as in a log with commit markers."""
    return [replica.apply(2 * (start + at), record) for at, record in enumerate(records)]


def kinds(records: Sequence[LogRecord]) -> list[VerdictKind | None]:
    """The verdicts of a new replica, None for a record without an outcome or a rejected one."""
    outcomes = read(Replica(NamesInMemory()), [FIRST, *records])[1:]
    return [None if outcome is None or outcome.verdict is None else outcome.verdict.kind for outcome in outcomes]


def copies(number: int, start: int = 0) -> list[LogRecord]:
    """Copies of one story without titles, so that all are suspicious."""
    return [page(at, f"http://site/{at}", 1) for at in range(start, start + number)]


def test_changed_guards_keep_the_guard_state() -> None:
    """Raised bounds accept the next copies, lowered ones none; a rule without guards drops the state."""
    guarded, lenient, unguarded = (
        PolicyRecord(Policy(rule, Action.FLAG, SPACE_ID, LAYOUT)) for rule in (GUARDED, LENIENT, UNGUARDED)
    )
    log: list[LogRecord] = [guarded, *copies(4), lenient, *copies(1, 4), guarded, *copies(1, 5), unguarded]
    log += copies(2, 6)
    replica = Replica(NamesInMemory())
    read(replica, [FIRST, *log])
    assert replica.state().decider.guards is None
    expected = ["unique", "duplicate", "duplicate", "undecided", "duplicate", "undecided", "duplicate", "duplicate"]
    assert [kind for kind in kinds(log) if kind] == expected
    assert kinds([*log, guarded, *copies(3, 20)])[-3:] == ["duplicate", "duplicate", "undecided"]


def test_guards_are_counted() -> None:
    """Guards are counted by name, in addition to the verdicts."""
    replica = Replica(NamesInMemory())
    log: list[LogRecord] = [FIRST, PolicyRecord(Policy(GUARDED, Action.FLAG, SPACE_ID, LAYOUT)), *copies(5)]
    read(replica, log)
    assert (replica.counts["undecided"], replica.counts["guard_titles"], replica.counts["guard_pages"]) == (2, 0, 2)


def test_refused_claims_are_counted() -> None:
    """A page that names a kept page of another text is counted, one that names a page of its text is not."""
    replica = Replica(NamesInMemory())
    visit, thief = (
        claiming(page(1, "http://site/print", 1), "http://site/a"),
        claiming(page(2, "http://site/x", 2), "http://site/a"),
    )
    outcomes = read(replica, [FIRST, page(0, "http://site/a", 1), visit, thief, page(3, "http://other/a", 1)])
    verdicts = [outcome.verdict for outcome in outcomes if outcome is not None and outcome.verdict is not None]
    assert [verdict.kind.value for verdict in verdicts] == ["unique", "unchanged", "unique", "duplicate"]
    assert verdicts[3].duplicate_of == "http://site/a"
    assert replica.counts["claim_refused"] == 1


records = st.lists(
    st.one_of(
        st.builds(
            claiming,
            st.builds(
                page,
                offset=st.integers(0, 30),
                url=st.sampled_from([f"http://site{letter in 'efgh'}/{letter}" for letter in "abcdefghij"]),
                story=st.integers(0, 4),
                version=st.integers(0, 2),
                partition=st.integers(0, 1),
                space=st.sampled_from([SPACE_ID, SPACE_ID, SPACE_ID, "other-space"]),
            ),
            st.none() | st.sampled_from([f"http://siteFalse/{letter}" for letter in "abcd"]),
        ),
        st.builds(
            RejectedRecord, st.builds(Source, st.just("pages"), st.integers(0, 1), st.integers(0, 30)), st.just("no")
        ),
        st.builds(RetractionRecord, st.sampled_from([f"http://site/{letter}" for letter in "abcd"]), st.just("gone")),
        st.builds(
            lambda partition, offset, count: ExpiredRecord(Source("pages", partition, offset), offset + count),
            st.integers(0, 1),
            st.integers(0, 25),
            st.integers(1, 6),
        ),
        st.builds(UnwrittenRecord, st.lists(st.integers(0, 40), max_size=3).map(tuple), st.just("lost")),
        st.builds(UnreadableRecord, st.just("no record")),
        st.builds(
            CorrectionRecord,
            st.sampled_from(["http://site/a", "http://site/b"]),
            st.sampled_from(["http://site/c", "http://site/d"]),
            st.booleans(),
            st.just("seen"),
        ),
        st.builds(
            PolicyRecord,
            st.builds(
                Policy,
                st.sampled_from(
                    [rule_for("body"), rule_for("words", k=1), KEYS_ALONE, rule_for(), GUARDED, LENIENT, UNGUARDED]
                ),
                st.sampled_from(Action),
                st.just(SPACE_ID),
                st.sampled_from([LAYOUT] * 5 + [IndexLayout(slots=4, window=3)]),
            ),
            st.booleans(),
            replaces=st.none() | st.integers(0, 40),
        ),
    ),
    max_size=40,
)


@given(records, st.data())
def test_a_replica_from_a_snapshot_continues_as_one_that_read_everything(
    log: list[LogRecord], data: st.DataObject
) -> None:
    """Rows and state at any record contain all that later outcomes depend on."""
    log = [FIRST, *log]
    cut = data.draw(st.integers(0, len(log)))
    names = NamesInMemory()
    whole = Replica(names)
    expected = read(whole, log)
    first = Replica(names)
    begun = read(first, log[:cut])
    second = Replica(names, rows=first.held(), state=first.state())
    assert begun + read(second, log[cut:], start=cut) == expected
    assert second.state() == whole.state()
    assert second.held().entries() == whole.held().entries()


def inputs_of(record: PageRecord | RejectedRecord | ExpiredRecord) -> set[Source]:
    """The input records that a record of the log is about."""
    end = record.end if isinstance(record, ExpiredRecord) else record.source.offset + 1
    return {replace(record.source, offset=offset) for offset in range(record.source.offset, end)}


@given(records)
def test_every_input_record_has_one_outcome(log: list[LogRecord]) -> None:
    """An input record that is repeated in the log has its outcome where it came first."""
    outcomes = [outcome for outcome in read(Replica(NamesInMemory()), [FIRST, *log]) if outcome is not None]
    seen: set[Source] = set()
    expected = []
    for record in log:
        if isinstance(record, PageRecord | RejectedRecord | ExpiredRecord):
            new = sorted(inputs_of(record) - seen)
            expected += new[:1]
            seen.update(new)
    assert [outcome.source for outcome in outcomes] == expected


@given(records)
def test_counts_add_up(log: list[LogRecord]) -> None:
    """Verdicts, rejections and repetitions add up to the input records of the log."""
    replica = Replica(NamesInMemory())
    read(replica, [FIRST, *log])
    inputs = [record for record in log if isinstance(record, PageRecord | RejectedRecord | ExpiredRecord)]
    single = [record for record in inputs if not isinstance(record, ExpiredRecord)]
    different = set().union(*map(inputs_of, inputs))
    answered = sum(replica.counts[name] for name in (*VerdictKind, "rejected"))
    assert answered + replica.counts["repeated"] == len(single)
    assert answered + replica.counts["expired"] == len(different)


def test_the_same_delivery_twice_is_counted_once() -> None:
    """A record appended a second time changes nothing and is not an `unchanged` visit."""
    replica = Replica(NamesInMemory())
    outcomes = read(replica, [FIRST, page(5, "http://one/", 1), page(5, "http://one/", 1)])
    assert outcomes[2] is None
    assert replica.counts["repeated"] == 1
    assert replica.counts["unique"] == 1


def test_a_page_of_another_space_is_kept_undecided() -> None:
    """It is compared with nothing, and nothing is compared with it."""
    log = [page(1, "http://one/", 1, space="other"), page(2, "http://two/", 1)]
    assert kinds(log) == ["undecided", "unique"]


def test_a_retraction_makes_room_for_a_copy() -> None:
    """Afterwards the text is new; a second retraction of the page has no effect."""
    retraction = RetractionRecord("http://one/", "taken down")
    assert kinds([page(1, "http://one/", 1), retraction, retraction, page(2, "http://two/", 1)]) == [
        "unique",
        None,
        None,
        "unique",
    ]


def test_a_retraction_of_an_unknown_page_has_no_effect() -> None:
    """It may come before the page, or name one that was never kept."""
    assert kinds([RetractionRecord("http://one/", "?"), page(1, "http://one/", 1)]) == [None, "unique"]


def test_pages_that_were_never_written_out_leave_so_that_the_next_copy_is_unique() -> None:
    """The log has them, a store has not; a copy that was called a duplicate of one stays where it is."""
    lost = UnwrittenRecord((2, 4, 99), "retention")
    copy = page(2, "http://two/", 1)
    again = [page(3, "http://one/", 1), page(4, "http://three/", 1)]
    assert kinds([page(1, "http://one/", 1), copy, lost, lost, *again]) == [
        "unique",
        "duplicate",
        None,
        None,
        "unique",
        "duplicate",
    ]


def test_a_later_visit_of_a_page_that_was_never_written_out_stays() -> None:
    """Its text is another one, which was written."""
    lost = UnwrittenRecord((2,), "retention")
    updated, again = page(2, "http://one/", 2), page(3, "http://one/", 2)
    assert kinds([page(1, "http://one/", 1), updated, lost, again]) == ["unique", "updated", None, "unchanged"]


def test_records_deleted_before_they_were_read_have_one_outcome() -> None:
    """It says how many; a page of the range that comes nevertheless is a repetition."""
    replica = Replica(NamesInMemory())
    expired = ExpiredRecord(Source("pages", 0, 3), 8)
    outcomes = read(replica, [FIRST, page(4, "http://one/", 1), expired, page(5, "http://two/", 2), expired])
    assert [outcome and outcome.source.offset for outcome in outcomes] == [None, 4, 3, None, None]
    assert outcomes[2] is not None
    assert outcomes[2].problem == "4 records up to offset 7 were deleted before they were read"
    assert outcomes[2].end is None  # offset 4, between them, has an outcome of its own
    assert (replica.counts["expired"], replica.counts["repeated"]) == (4, 1)


def test_a_policy_that_replaces_another_than_the_one_in_force_is_void() -> None:
    """Of two that were set at once, each in the place of the first, one takes effect."""
    replica = Replica(NamesInMemory())
    drop, pass_on = (replace(FIRST.policy, action=action) for action in (Action.DROP, Action.PASS))
    read(replica, [FIRST, PolicyRecord(drop, replaces=0), PolicyRecord(pass_on, replaces=0)])
    assert replica.policy == drop
    assert (replica.policy_sequence, replica.counts["policy_void"]) == (2, 1)
    replica.apply(9, PolicyRecord(pass_on, replaces=2))
    assert replica.policy == pass_on


def test_a_replaced_correction_does_not_return_with_a_snapshot() -> None:
    """A page is called a copy of one page, then of another, then of neither: the rule decides."""
    url, one, two = "http://copy/", "http://one/", "http://two/"
    log = [
        FIRST,
        page(1, one, 1),
        page(2, two, 2),
        CorrectionRecord(url, one, duplicate=True, reason=""),
        CorrectionRecord(url, two, duplicate=True, reason=""),
        CorrectionRecord(url, two, duplicate=False, reason=""),
    ]
    names = NamesInMemory()
    whole = Replica(names)
    read(whole, log)
    again = Replica(names, rows=whole.held(), state=whole.state())
    outcomes = [read(replica, [page(3, url, 3)], start=len(log))[0] for replica in (whole, again)]
    assert [outcome.verdict.kind for outcome in outcomes if outcome and outcome.verdict] == ["unique", "unique"]


def test_the_first_of_several_initial_policies_wins() -> None:
    """Services that start together on an empty log get one policy and one identity."""
    second = PolicyRecord(Policy(rule_for("words"), Action.DROP, SPACE_ID, LAYOUT), initial=True, log="another")
    replica = Replica(NamesInMemory())
    read(replica, [FIRST, second])
    assert (replica.policy, replica.log) == (FIRST.policy, "a-log")


def test_a_log_has_one_space() -> None:
    """A policy of another space is void and counted: it must not stop the readers of the log."""
    replica = Replica(NamesInMemory())
    read(replica, [FIRST, PolicyRecord(Policy(rule_for(), Action.DROP, "other-space"))])
    assert (replica.policy, replica.counts["policy_void"]) == (FIRST.policy, 1)


def test_a_log_has_one_layout() -> None:
    """With other slots or another window the same pages could get other verdicts: such a policy is void, too."""
    replica = Replica(NamesInMemory())
    others = [IndexLayout(slots=4, window=3), IndexLayout(slots=2, window=4), IndexLayout()]
    read(replica, [FIRST, *(PolicyRecord(Policy(rule_for(), Action.DROP, SPACE_ID, layout)) for layout in others)])
    assert (replica.policy, replica.counts["policy_void"]) == (FIRST.policy, 3)


@given(records)
def test_a_policy_keeps_cells_window_and_host_text(log: list[LogRecord]) -> None:
    """Records of a rule that asks for no keys fill the cells like any others, so a rule with keys can follow."""
    first = PolicyRecord(Policy(KEYS_ALONE, Action.FLAG, SPACE_ID, LAYOUT), initial=True, log="a-log")
    then = PolicyRecord(Policy(KEYS_ALONE, Action.FLAG, SPACE_ID, LAYOUT))
    away = PolicyRecord(Policy(rule_for("words", k=0), Action.FLAG, SPACE_ID, LAYOUT))
    steady, moved = Replica(NamesInMemory()), Replica(NamesInMemory())
    pages = [record for record in log if not isinstance(record, PolicyRecord)]
    steady.apply(0, first)
    moved.apply(0, first)
    for number, record in enumerate(pages):
        before = moved.state().decider
        for at, policy in ((1, away), (2, then)):
            moved.apply(4 * number + at, policy)
            assert moved.state().decider == replace(before, guards=moved.state().decider.guards)
        expected = steady.apply(4 * number + 3, record)
        assert moved.apply(4 * number + 3, record) == expected
        assert moved.state().decider == steady.state().decider
        assert moved.held().entries() == steady.held().entries()


def test_a_page_before_any_policy_is_refused() -> None:
    """Such a topic was not begun by twinsieve."""
    with pytest.raises(StateError, match="before any policy"):
        Replica(NamesInMemory()).apply(0, page(1, "http://one/", 1))


def titled(offset: int, title: int, story: int) -> PageRecord:
    """A page of one host with a frame of two sentences under a title."""
    folded = f"the frame of this site. another sentence of the frame. this is story {story}"
    evidence = evidence_of(folded, f"title {title}")
    return PageRecord(Source("pages", 0, offset), prepared(f"http://site/{offset}", story, evidence=evidence), SPACE_ID)


@given(st.lists(st.builds(titled, st.integers(0, 30), st.integers(0, 9), st.integers(0, 4)), max_size=40))
def test_host_text_is_a_fold_of_the_first_deliveries(log: list[LogRecord]) -> None:
    """It is the same under every rule, whatever the verdicts; a delivery that comes again adds nothing."""
    expected, seen = HostText(), set()
    for record in log:
        assert isinstance(record, PageRecord)
        if record.source not in seen:
            seen.add(record.source)
            evidence = Evidence(record.prepared.evidence)
            keys, sentences = record.prepared.keys, evidence.sentence_values
            expected.learn(host_hash("http://site/"), evidence.terms, keys, sentences)
    for rule in (rule_for("body"), rule_for("words", k=1), GUARDED, PROFILES["balanced"]):
        replica = Replica(NamesInMemory())
        read(replica, [PolicyRecord(Policy(rule, Action.FLAG, SPACE_ID), initial=True, log="a-log"), *log])
        assert replica.host_text().state() == expected.state()
    assert len(Replica(NamesInMemory()).host_text()) == 0
