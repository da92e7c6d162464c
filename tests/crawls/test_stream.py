"""Generated streams: their known truth holds, whatever the order of their partitions."""

import random
from collections import Counter
from zlib import crc32

import pytest

from dedup_service.core.log_records import LogRecord, PageRecord, Policy, PolicyRecord, RejectedRecord, Source
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.messages.log_record import decode, encode
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.workers.preparation import BadRecord, prepare_record
from tests.crawls.stream import Kind, RecordTruth, Sent, stream
from tests.crawls.truth import contradictions
from tests.oracle.log import answers

PARTITIONS = 3


def placed(records: list[Sent]) -> dict[Source, Sent]:
    """Return the records by source; the key determines the partition."""
    ends: Counter[int] = Counter()
    found = {}
    for sent in records:
        partition = crc32(sent.key) % PARTITIONS
        found[Source("pages", partition, ends[partition])] = sent
        ends[partition] += 1
    return found


def log_of(inputs: dict[Source, Sent], rng: random.Random) -> list[tuple[int, LogRecord]]:
    """Return a log that reads the partitions in random order, each partition in its own order."""
    policy = Policy(rule_for("both"), Action.FLAG, build_fingerprinter().space_id)
    log: list[LogRecord] = [PolicyRecord(policy, initial=True)]
    waiting = [[source for source in inputs if source.partition == partition] for partition in range(PARTITIONS)]
    while any(waiting):
        source = rng.choice([queue for queue in waiting if queue]).pop(0)
        message = PageMessage(source.topic, source.partition, source.offset, inputs[source].value)
        answer = prepare_record(SpaceOptions(), message)
        if isinstance(answer, BadRecord):
            log.append(RejectedRecord(source, answer.problem))
        else:
            log.append(PageRecord(source, answer, policy.space_id))
    return [(sequence, read) for sequence, record in enumerate(log) for read in decode(encode(record))]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_truth_of_a_stream_holds_in_any_order_of_its_partitions(seed: int) -> None:
    """The oracle's verdicts do not contradict the truth of the generator."""
    inputs = placed(list(stream(seed, 400, html=0.1)))
    truths = {source: sent.truth for source, sent in inputs.items()}
    verdicts = {source: answer.verdict for source, answer in answers(log_of(inputs, random.Random(seed))).items()}
    assert contradictions(truths, verdicts) == []
    assert set(verdicts.values()) == {"unique", "duplicate", "unchanged", "updated", "undecided", "rejected"}


def test_a_stream_is_a_function_of_its_seed() -> None:
    """The same seed gives the same bytes, another seed gives others."""
    assert list(stream(5, 50)) == list(stream(5, 50))
    assert list(stream(5, 50)) != list(stream(6, 50))


def test_a_story_has_exactly_one_unique_visit() -> None:
    """Two unique visits, none, and a record without an answer are contradictions."""
    one, two = Source("pages", 0, 0), Source("pages", 1, 0)
    truths = {source: RecordTruth(Kind.STORY, "s", "s") for source in (one, two)}
    assert not contradictions(truths, {one: "duplicate", two: "unique"})
    assert contradictions(truths, {one: "unique", two: "unique"})
    assert contradictions(truths, {one: "duplicate", two: "duplicate"})
    assert contradictions(truths, {one: "unique"})


def test_visits_of_a_url_have_exact_verdicts() -> None:
    """First, unchanged and updated visits are in the order of the partition."""
    truths = {Source("pages", 0, at): RecordTruth(Kind.VISITS, "u", body) for at, body in enumerate("aab")}
    kinds = ("unique", "unchanged", "updated")
    assert not contradictions(truths, dict(zip(truths, kinds, strict=True)))
    assert contradictions(truths, dict(zip(truths, ("unique", "updated", "updated"), strict=True)))
