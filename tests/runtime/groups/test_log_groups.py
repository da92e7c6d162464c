"""Groups of a service's log, against the entries of its replica after each record."""

import json
import random
from dataclasses import replace

from dedup_service.core.decision.replica import Replica
from dedup_service.core.groups.member import GroupMember, Removal
from dedup_service.core.log_records import (
    CorrectionRecord,
    LogRecord,
    PageRecord,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    Source,
    UnwrittenRecord,
    sequence_at,
)
from dedup_service.core.page import PreparedPage
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.groups.log_groups import LogGroups
from dedup_service.runtime.groups.spool import group_spool
from dedup_service.runtime.kafka.messages.log_record import decode, encode
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.resources import SpaceOptions
from dedup_service.runtime.workers.preparation import prepare_record
from tests.core.decision.test_expiry import page, policy
from tests.page_names import NamesInMemory
from tests.runtime.embedded.prepared import SPACE_ID
from tests.runtime.groups.canonical_logs import generated_log


def members_of(log: list[LogRecord], rng: random.Random) -> dict[int, tuple[int, GroupMember]]:
    """The pages of a log by sequence, with their groups; it is read in parts of any size."""
    with group_spool(with_sentences=False) as spool:
        groups = LogGroups(Replica(NamesInMemory()), spool)
        start = 0
        while start < len(log):
            end = start + rng.randint(1, 40)
            groups.take([(1000 * at, at, record) for at, record in enumerate(log[start:end], start)])
            start = end
        return {member.sequence: (group, member) for group, member in spool.members()}


def generated(rng: random.Random) -> list[LogRecord]:
    """A log of pages, some of them again, with what operators and the service add."""
    log: list[LogRecord] = [policy()]
    for offset in range(250):
        url, other = (f"http://a.example/{rng.randrange(40)}" for _ in range(2))
        match rng.randrange(30):
            case 0:
                log.append(RetractionRecord(url, "gone"))
            case 1:
                log.append(CorrectionRecord(url, other, rng.random() < 0.7, "said so"))
            case 2:
                log.append(UnwrittenRecord((rng.randrange(1, len(log) + 1),), "refused"))
            case 3:
                log.append(RejectedRecord(Source("pages", 0, offset), "no page"))
            case 4:
                log.append(page(rng.randrange(offset + 1), 1, 1))  # perhaps a delivery that the log has
            case _:
                log.append(page(offset, rng.randrange(40), rng.randrange(20)))
    return log


def test_every_page_is_in_the_group_of_the_entry_that_it_names() -> None:
    """Removals are those of the replica, record by record."""
    for seed in range(3):
        log = generated(random.Random(seed))
        found = members_of(log, random.Random(seed))
        replica = Replica(NamesInMemory())
        removed: dict[int, Removal] = {}
        retracted: dict[str, int] = {}
        pages: dict[int, str] = {}
        for sequence, record in enumerate(log):
            live = {at for at in pages if replica.holds(at)}
            outcome = replica.apply(sequence, record)
            gone = {at for at in live if not replica.holds(at)}
            match record:
                case PageRecord() if outcome is not None and outcome.verdict is not None:
                    pages[sequence] = outcome.canonical_url or ""
                    begins = outcome.original is None or outcome.verdict.kind is VerdictKind.UPDATED
                    assert found[sequence][0] == (sequence if begins else outcome.original)
                    assert found[sequence][1].source == record.source
                    assert found[sequence][1].logged_ms == 1000 * sequence
                    removed.update(dict.fromkeys(gone, Removal.UPDATE))
                case CorrectionRecord():
                    removed.update(dict.fromkeys(gone, Removal.CORRECTION))
                case UnwrittenRecord(sequences):
                    removed.update({at: removed.get(at, Removal.UNWRITTEN) for at in sequences})
                case RetractionRecord(url):
                    retracted[url] = sequence
        assert found.keys() == pages.keys()
        for sequence, (_, member) in found.items():
            is_retracted = retracted.get(member.canonical_url, -1) > sequence
            assert member.removed == (Removal.RETRACTION if is_retracted else removed.get(sequence))


def test_members_have_what_the_log_says_of_their_publication() -> None:
    """The day of the date, and the share of main text."""
    record = page(0, 1, 1)
    told = replace(record.prepared.page, date="2024年3月5日", text_percent=62)
    record = replace(record, prepared=replace(record.prepared, page=told))
    found = members_of([policy(), record, page(1, 2, 1)], random.Random(1))
    assert [(member.date, member.text_percent) for _, member in found.values()] == [("2024-03-05", 62), (None, None)]


def test_a_page_of_a_topic_keeps_its_date_up_to_its_group() -> None:
    """Of HTML, with its share of main text, and of text, from its published value to the log and back."""
    text = (
        "Engineers told the meeting that the old piles had lost a third of their strength since they were driven in. "
    )
    html = f'<meta property="article:published_time" content="2024-03-05"><p>{text * 3}</p><div>Home, {text}</div>'
    values = ({"html": html}, {"text": text, "date": "2024年3月6日 08:00"}, {"text": text})
    log: list[LogRecord] = [policy()]
    for offset, value in enumerate(values):
        line = json.dumps({"url": f"https://a.example/{offset}"} | value).encode()
        prepared = prepare_record(SpaceOptions(), PageMessage("pages", 0, offset, line))
        assert isinstance(prepared, PreparedPage)
        log += decode(encode(PageRecord(Source("pages", 0, offset), prepared, SPACE_ID)))
    of_html, of_text, plain = (member for _, member in members_of(log, random.Random(1)).values())
    assert (of_html.date, of_text.date, plain.date) == ("2024-03-05", "2024-03-06", None)
    assert of_html.text_percent is not None
    assert 60 < of_html.text_percent <= 100
    assert (of_text.text_percent, plain.text_percent) == (None, None)


def test_the_policy_of_canonical_pages_changes_no_verdict() -> None:
    """Neither an outcome nor an entry is another one: the record is as one that changes nothing."""
    records = generated_log(random.Random(7), 150)
    plain = [
        replace(record, policy=replace(record.policy, canonical="earliest"))
        if isinstance(record, PolicyRecord)
        else record
        for record in records
    ]
    assert plain != records
    changed, unchanged = Replica(NamesInMemory()), Replica(NamesInMemory())
    rows = [(sequence_at(2 * at), record) for at, record in enumerate(records)]
    outcomes = changed.apply_many(rows)
    assert outcomes == unchanged.apply_many([(at, record) for (at, _), record in zip(rows, plain, strict=True)])
    assert replace(changed.state(), policy=None) == replace(unchanged.state(), policy=None)
    assert changed.held().entries() == unchanged.held().entries()


def test_a_page_that_comes_later_cannot_have_been_unwritten() -> None:
    """It stands for its group, as the replica keeps it."""
    log: list[LogRecord] = [policy(), UnwrittenRecord((2,), "refused"), page(0, 1, 1)]
    assert members_of(log, random.Random(1))[2][1].removed is None
