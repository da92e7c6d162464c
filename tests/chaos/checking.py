"""Checks after a round: every page was answered exactly once, and correctly.

Reads all topics as a plain consumer with `read_committed`. Compares them with the records that were sent,
with the oracle over the log, and with the known truth of the stream. Each finding is a sentence; no findings
means success.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kafka.consumer.fetcher import ConsumerRecord

from dedup_service.core.log_records import (
    LogRecord,
    PageRecord,
    RejectedRecord,
    Source,
    UnwrittenRecord,
    first_offset,
)
from dedup_service.runtime.kafka.messages.log_record import numbered
from dedup_service.runtime.kafka.messages.verdict import read_verdict
from dedup_service.runtime.kafka.topics import OutputMode, Topics
from tests.chaos.base_faults import BASE, RoundBase
from tests.chaos.reading import read_all
from tests.crawls.stream import RecordTruth, Sent
from tests.crawls.truth import REJECTED, contradictions
from tests.oracle.log import Oracle, OracleAnswer, OracleBase, oracle_of

Records = Mapping[str, Sequence[ConsumerRecord]]
MAX = 20
ERROR = "twinsieve.error"
UNJUDGED = b'"reason":"not judged: '
PASSED_ON = {
    "unique": "unique",
    "updated": "unique",
    "undecided": "unique",
    "duplicate": "duplicate",
    "unchanged": "duplicate",
    REJECTED: "dlq",
}


@dataclass
class Findings:
    """Result of a check. complaints: sentences, at most MAX of each kind; counts: records by outcome."""

    complaints: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, problems: Iterable[str]) -> None:
        """Add problems of one kind."""
        problems = list(problems)
        self.complaints += [f"{kind}: {problem}" for problem in problems[:MAX]]
        if len(problems) > MAX:
            self.complaints.append(f"{kind}: and {len(problems) - MAX} more")


def check(
    bootstrap: str,
    topics: Topics,
    sent: Sequence[Sent],
    loose: frozenset[str] = frozenset(),
    gone: Mapping[Source, ConsumerRecord] | None = None,
    kinds: OutputMode = OutputMode.PAGES,
    base: RoundBase | None = None,
) -> Findings:
    """Read all topics and compare.

    sent: the published records. loose: stories that may be unique again, and URLs whose visits may have changed
    places. gone: records that were deleted from `pages`. kinds: what the services wrote for a page. base: of the log.
    """
    names = (topics.pages, topics.fingerprints, topics.unique, topics.duplicate, topics.verdicts, topics.dlq)
    records = read_all(bootstrap, names)
    findings = Findings()
    gone = gone or {}
    inputs = {**gone, **{_place(record): record for record in records[topics.pages]}}
    log, oracle = _followed(records[topics.fingerprints], base)
    known = {(one.key, one.value): one.truth for one in sent}
    if base is not None:
        copies = {source for source, record in inputs.items() if _copies_lost(known, record, base)}
        _check_taken_down(findings, oracle, log, base, records[topics.verdicts], copies)
    expected = _without_lost(findings, oracle, gone, records[topics.dlq])
    logged = Counter(record.source for _, record in log if isinstance(record, PageRecord | RejectedRecord))
    findings.counts.update(pages=len(inputs), log=len(log), logged_again=sum(logged.values()) - len(logged))
    findings.counts.update(answer.verdict for answer in expected.values())
    findings.add(
        "lost between pages and log", (str(source) for source in inputs.keys() - expected.keys() - oracle.expired)
    )
    findings.add("in the log before an earlier one", map(str, _out_of_order(record for _, record in log)))
    findings.add("in the log, not in pages", (str(source) for source in expected.keys() - inputs.keys()))
    _check_verdicts(findings, expected, records[topics.verdicts])
    outputs = {"unique": topics.unique, "duplicate": topics.duplicate, "dlq": topics.dlq}
    for output, topic in outputs.items():
        wanted = {source for source, a in expected.items() if PASSED_ON[a.verdict] == output and not a.dropped}
        if kinds is OutputMode.VERDICTS and output != "dlq":
            wanted = set()
        _check_output(findings, output, wanted, inputs, records[topic])
    _check_truth(findings, sent, inputs, expected, loose)
    return findings


def _followed(messages: Sequence[ConsumerRecord], base: RoundBase | None) -> tuple[list[tuple[int, LogRecord]], Oracle]:
    """Return the records of the log with their sequences, and the oracle behind them."""
    if base is None:
        log = numbered(messages)
        return log, oracle_of(log)
    first = first_offset(max(base.pages))
    log = numbered(message._replace(offset=first + message.offset) for message in messages)
    return log, oracle_of(log, OracleBase(BASE, base.pages))


def _copies_lost(known: Mapping[object, RecordTruth], record: ConsumerRecord, base: RoundBase) -> bool:
    """Whether a record is a copy of a page that was taken down in the base."""
    truth = known.get((record.key, record.value))
    return truth is not None and truth.name in base.taken_down_urls


def _check_taken_down(
    findings: Findings,
    oracle: Oracle,
    log: Iterable[tuple[int, LogRecord]],
    base: RoundBase,
    verdicts: Sequence[ConsumerRecord],
    copies: set[Source],
) -> None:
    """Check that no verdict names a page behind the record of the log that says that its base has retracted it.

    copies: of such pages. Each has any verdict here: whoever decides it again, from a snapshot before the retraction,
    does so without the page, so that an earlier copy is the original of a later one.
    """
    findings.counts.update(taken_down=len(base.taken_down))
    findings.add("taken down, and the log does not say so", map(str, base.taken_down - oracle.unwritten))
    oracle.unwritten.difference_update(base.pages)
    lost_at: dict[str, int] = {}
    for sequence, record in log:
        if isinstance(record, UnwrittenRecord):
            for page in base.pages.keys() & set(record.sequences):
                lost_at.setdefault(base.pages[page].page.url, sequence)
    for value in (record.value for record in verdicts):
        verdict, source = read_verdict(value)
        if verdict.sequence > lost_at.get(verdict.duplicate_of_url or "", verdict.sequence):
            findings.add("names a page that was taken down", [str(verdict)])
        if source in copies:
            oracle.answers[source] = replace(oracle.answers[source], verdict=verdict.kind.value, value=value)


def _out_of_order(log: Iterable[LogRecord]) -> Iterator[Source]:
    """Yield pages that come in the log for the first time after a later page of their partition has come."""
    seen: set[Source] = set()
    latest: dict[tuple[str, int], int] = {}
    for record in log:
        if not isinstance(record, PageRecord) or record.source in seen:
            continue
        source = record.source
        seen.add(source)
        place = (source.topic, source.partition)
        if source.offset < latest.get(place, -1):
            yield source
        latest[place] = max(source.offset, latest.get(place, -1))


def _without_lost(
    findings: Findings, oracle: Oracle, gone: Mapping[Source, ConsumerRecord], letters: Sequence[ConsumerRecord]
) -> dict[Source, OracleAnswer]:
    """Return the expected answers: those of pages whose content was deleted are dead letters.

    Only deleted pages may be lost; the log must say so of those that a store should have had, and of no other.
    """
    lost = {source for source in map(_origin, letters) if oracle.answers[source].value is not None}
    stored = {
        oracle.answers[source].sequence for source in lost if PASSED_ON[oracle.answers[source].verdict] == "unique"
    }
    findings.counts.update(lost=len(lost), expired=len(oracle.expired))
    findings.add("lost though it is there", (str(source) for source in lost - gone.keys()))
    findings.add("lost, and the log does not say so", map(str, stored - oracle.unwritten))
    findings.add("not lost, though the log says so", map(str, oracle.unwritten - stored))
    return {
        source: OracleAnswer(answer.sequence, REJECTED, None) if source in lost else answer
        for source, answer in oracle.answers.items()
    }


def _check_verdicts(
    findings: Findings, expected: Mapping[Source, OracleAnswer], records: Sequence[ConsumerRecord]
) -> None:
    """Check that each decided record has one message, with the oracle's bytes."""
    actual: dict[bytes, int] = Counter(record.value for record in records)
    wanted = Counter(answer.value for answer in expected.values() if answer.value is not None)
    findings.add("verdict twice", (f"{count} times {value!r}" for value, count in actual.items() if count > 1))
    findings.add("verdict missing", (repr(value) for value in wanted.keys() - actual.keys()))
    findings.add("verdict other than the oracle's", (repr(value) for value in actual.keys() - wanted.keys()))


def _check_output(
    findings: Findings,
    output: str,
    wanted: set[Source],
    inputs: Mapping[Source, ConsumerRecord],
    records: Sequence[ConsumerRecord],
) -> None:
    """Check that an output has its pages, each once, with the bytes, key and headers of its input record."""
    found: dict[Source, list[ConsumerRecord]] = defaultdict(list)
    for record in records:
        found[_origin(record)].append(record)
    twice = {source: group for source, group in found.items() if len(group) > 1}
    findings.add(f"twice in {output}", (f"{source} at {[r.offset for r in group]}" for source, group in twice.items()))
    findings.add(f"missing in {output}", (str(source) for source in wanted - found.keys()))
    findings.add(f"does not belong in {output}", (str(source) for source in found.keys() - wanted))
    both = (source for source in wanted & found.keys() if source in inputs)
    changed = (source for source in both if not _same(inputs[source], found[source][0]))
    findings.add(f"changed in {output}", map(str, changed))


def _check_truth(
    findings: Findings,
    sent: Sequence[Sent],
    inputs: Mapping[Source, ConsumerRecord],
    expected: Mapping[Source, OracleAnswer],
    loose: frozenset[str],
) -> None:
    """Check that everything sent has arrived, and that no verdict contradicts the known truth.

    A page that killed its worker process twice is kept as undecided; nothing else is known of such a page.
    """
    known: dict[tuple[bytes, bytes | None], RecordTruth] = {(one.key, one.value): one.truth for one in sent}
    arrived = Counter((record.key, record.value) for record in inputs.values())
    missing = Counter((one.key, one.value) for one in sent) - arrived
    findings.add("sent, not in pages", (repr(key) for key, _ in missing))
    truths = {source: known[record.key, record.value] for source, record in inputs.items() if source in expected}
    unjudged = {source for source, answer in expected.items() if UNJUDGED in (answer.value or b"")}
    findings.counts.update(unjudged=len(unjudged))
    truths = {source: truth for source, truth in truths.items() if source not in unjudged and truth.name not in loose}
    verdicts = {source: answer.verdict for source, answer in expected.items()}
    findings.add("known to be wrong", contradictions(truths, verdicts))


def _place(record: ConsumerRecord) -> Source:
    return Source(record.topic, record.partition, record.offset)


def _origin(record: ConsumerRecord) -> Source:
    """Return the input record of a page that was passed on, from its headers."""
    headers = dict(record.headers)
    topic, partition, offset = (headers[f"twinsieve.{name}"].decode() for name in ("topic", "partition", "offset"))
    return Source(topic, int(partition), int(offset))


def _same(before: ConsumerRecord, after: ConsumerRecord) -> bool:
    """Whether a record was passed on as it was; a dead letter may be cut, or empty if its record was deleted."""
    headers = dict(after.headers)
    if any(name.startswith("twinsieve.cut_") for name in headers) or b"deleted before" in headers.get(ERROR, b""):
        return True
    kept = [header for header in after.headers if not header[0].startswith("twinsieve.")]
    return (before.key, before.value, list(before.headers)) == (after.key, after.value, kept)
