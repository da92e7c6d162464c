"""The generated streams: what is known of them is true, in one partition and in several."""

import random
from collections import Counter
from zlib import crc32

import pytest

from benchmarks.service.oracle import answers
from benchmarks.service.stream import Kind, RecordTruth, Sent, stream
from benchmarks.service.truth import contradictions
from dedup_service.core.log_records import LogRecord, PageRecord, Policy, PolicyRecord, RejectedRecord, Source
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.messages.log_record import decode, encode
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.workers.preparation import BadRecord, prepare_record

PARTITIONS = 3


def placed(records: list[Sent]) -> dict[Source, Sent]:
    """The records in their partitions, by key."""
    ends: Counter[int] = Counter()
    found = {}
    for sent in records:
        partition = crc32(sent.key) % PARTITIONS
        found[Source("pages", partition, ends[partition])] = sent
        ends[partition] += 1
    return found


def log_of(inputs: dict[Source, Sent], rng: random.Random) -> list[tuple[int, LogRecord]]:
    """A log that took the partitions in at random, each in its order."""
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
    return [(sequence, decode(encode(record))) for sequence, record in enumerate(log)]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_known_of_a_stream_holds_in_any_order_of_its_partitions(seed: int) -> None:
    """The oracle's verdicts contradict nothing that the generator knows."""
    inputs = placed(list(stream(seed, 400, html=0.1)))
    truths = {source: sent.truth for source, sent in inputs.items()}
    said = {source: answer.verdict for source, answer in answers(log_of(inputs, random.Random(seed))).items()}
    assert contradictions(truths, said) == []
    assert set(said.values()) == {"unique", "duplicate", "unchanged", "updated", "undecided", "rejected"}


def test_a_stream_is_a_function_of_its_seed() -> None:
    """The same seed gives the same bytes, another one others."""
    assert list(stream(5, 50)) == list(stream(5, 50))
    assert list(stream(5, 50)) != list(stream(6, 50))


def test_two_unique_visits_of_a_story_are_a_contradiction() -> None:
    """So is none, and so is a record without an answer."""
    one, two = Source("pages", 0, 0), Source("pages", 1, 0)
    truths = {source: RecordTruth(Kind.STORY, "s", "s") for source in (one, two)}
    assert not contradictions(truths, {one: "duplicate", two: "unique"})
    assert contradictions(truths, {one: "unique", two: "unique"})
    assert contradictions(truths, {one: "duplicate", two: "duplicate"})
    assert contradictions(truths, {one: "unique"})


def test_the_history_of_a_url_is_known_exactly() -> None:
    """Its first visit, its returns and its changes, in the order of its partition."""
    truths = {Source("pages", 0, at): RecordTruth(Kind.VISITS, "u", body) for at, body in enumerate("aab")}
    kinds = ("unique", "unchanged", "updated")
    assert not contradictions(truths, dict(zip(truths, kinds, strict=True)))
    assert contradictions(truths, dict(zip(truths, ("unique", "updated", "updated"), strict=True)))
