"""What is wrong with the topics that exist, and what to do about each problem.

A fault makes the service refuse to start, because verdicts would be lost or wrong; a note only informs. The
log must have one partition and keep everything: if it were compacted or had a retention, a restored service
would have forgotten pages, and two services would disagree. Of the steps' offsets one partition is read, so they must
have one, too. A topic that is smaller than what the service may have to write to it would stop a page, so it is
a fault, too (`plan.least_message_bytes`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.client.admin import TopicDescription, administration
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.topics.plan import OutputMode, Topics, least_message_bytes

CHECKED_SETTINGS = (
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "max.message.bytes",
    "min.insync.replicas",
    "compression.type",
    "unclean.leader.election.enable",
)


@dataclass(frozen=True, slots=True)
class TopicProblem:
    """One problem: the actual value (`found`), the required one (`wanted`), and what to do.

    fault: the service refuses to start. passes: it may disappear by itself in a moment.
    """

    topic: str
    setting: str
    found: str
    wanted: str
    advice: str
    fault: bool = True
    passes: bool = False


def describe(
    connection: Connection, topics: Topics, outputs: OutputMode = OutputMode.PAGES, *, whole: bool = False
) -> list[TopicDescription]:
    """Return the topics that services with these `outputs` need and that exist, in the order of `topics.all`.

    whole: also those that only another step needs. They are not asked about otherwise: a service may have no right to
    describe what it does not write. Raises BrokerError.
    """
    names = topics.made_for(outputs) if whole else topics.needed_for(outputs)
    with administration(connection) as admin:
        return admin.describe_topics(names, CHECKED_SETTINGS)


def check(connection: Connection, topics: Topics, outputs: OutputMode = OutputMode.PAGES) -> list[TopicProblem]:
    """Return what is wrong with the set, faults first; raises BrokerError. outputs: of the services on it."""
    descriptions = describe(connection, topics, outputs, whole=True)
    problems = problems_of(descriptions, topics, outputs)
    if all(topic.name != topics.canonical for topic in descriptions):
        advice = f"only `serve --steps canonical` needs it; {_made(topics)}"
        problems.append(TopicProblem(topics.canonical, "topic", "missing", "there", advice, fault=False))
    return problems


def require_log(
    connection: Connection, topics: Topics, outputs: OutputMode = OutputMode.PAGES
) -> list[TopicDescription]:
    """Return the topics that are needed, as `describe`; ConfigurationError with every fault if they cannot be used.

    outputs: what a service writes. Whoever only adds to the log needs no topic that pages are passed on to.
    Raises UnreachableError if all faults may pass by themselves, and what `check` raises.
    """
    descriptions = describe(connection, topics, outputs)
    faults = [problem for problem in problems_of(descriptions, topics, outputs) if problem.fault]
    if faults:
        raise _unusable(connection, faults)
    return descriptions


def _unusable(connection: Connection, faults: list[TopicProblem]) -> UnreachableError | ConfigurationError:
    """Return what to raise about faults."""
    faults_text = "; ".join(f"{p.topic}: {p.setting} is {p.found}, must be {p.wanted} ({p.advice})" for p in faults)
    kind = UnreachableError if all(problem.passes for problem in faults) else ConfigurationError
    return kind(f"the topics at {connection.bootstrap} cannot be used: {faults_text}")


def require_canonical(connection: Connection, topics: Topics) -> None:
    """Raise ConfigurationError unless the topic `canonical` can be used; UnreachableError if that may pass by itself.

    Raises BrokerError.
    """
    with administration(connection) as admin:
        found = admin.describe_topics([topics.canonical], CHECKED_SETTINGS)
    if not found:
        raise ConfigurationError(f"topic {topics.canonical} is missing: run `{_made(topics)}`")
    faults = [problem for problem in _present(found, topics) if problem.fault]
    if faults:
        raise _unusable(connection, faults)


def require_shards(connection: Connection, topics: Topics, shards: int) -> None:
    """Raise ConfigurationError unless the topics for so many shards are there, as `create` makes them.

    UnreachableError if that may pass by itself; raises BrokerError.
    """
    with administration(connection) as admin:
        found = {topic.name: topic for topic in admin.describe_topics(topics.of_shards, CHECKED_SETTINGS)}
    prefix = f" --prefix {topics.prefix}" if topics.prefix else ""
    missing = [name for name in topics.of_shards if name not in found]
    if missing:
        raise ConfigurationError(
            f"{' and '.join(missing)} are missing, which shards need: run `twinsieve topics create --slots 8{prefix}`, "
            "with the number of slots of the log"
        )
    candidates, outcomes = found[topics.candidates], found[topics.outcomes]
    if candidates.partitions < shards:
        have = candidates.partitions
        raise ConfigurationError(f"{topics.candidates} has {have} partitions, {shards} shards need one each")
    faults = [*_partition_faults(outcomes), *_log_faults(outcomes)]
    if faults:
        raise ConfigurationError("; ".join(f"{p.topic}: {p.setting} is {p.found}, must be {p.wanted}" for p in faults))
    if candidates.offline or outcomes.offline:
        raise UnreachableError(f"partitions of {topics.candidates} or {topics.outcomes} have no leader")


def problems_of(
    descriptions: list[TopicDescription], topics: Topics, outputs: OutputMode = OutputMode.PAGES
) -> list[TopicProblem]:
    """As `check`, for topics that were described already."""
    by_name = {topic.name: topic for topic in descriptions}
    problems = [*_missing(by_name, topics, outputs), *_present(descriptions, topics)]
    return sorted(problems, key=lambda problem: not problem.fault)


def _present(descriptions: list[TopicDescription], topics: Topics) -> list[TopicProblem]:
    """Return what is wrong with topics that exist."""
    by_name = {topic.name: topic for topic in descriptions}
    problems: list[TopicProblem] = []
    for topic in descriptions:
        is_log, compacted = topic.name == topics.fingerprints, topic.name in topics.compacted
        if is_log or compacted:  # read as one sequence
            problems += _partition_faults(topic)
        if is_log:
            problems += _log_faults(topic)
        problems += _common(topic, is_log=is_log, compacted=compacted)
    problems += _sizes(by_name, topics)
    return problems


def _made(topics: Topics) -> str:
    """Return the command that makes the missing topics."""
    return "twinsieve topics create" + (f" --prefix {topics.prefix}" if topics.prefix else "")


def _missing(present: dict[str, TopicDescription], topics: Topics, outputs: OutputMode) -> Iterator[TopicProblem]:
    for name in topics.needed_for(outputs):
        if name not in present:
            yield TopicProblem(name, "topic", "missing", "there", _made(topics))


def _partition_faults(topic: TopicDescription) -> Iterator[TopicProblem]:
    if topic.partitions != 1:
        advice = "partitions cannot be removed: start a new set with --prefix"
        yield TopicProblem(topic.name, "partitions", str(topic.partitions), "1", advice)


def _log_faults(log: TopicDescription) -> Iterator[TopicProblem]:
    for setting, wanted in (("cleanup.policy", "delete"), ("retention.ms", "-1"), ("retention.bytes", "-1")):
        if log.settings.get(setting) != wanted:
            yield TopicProblem(
                log.name, setting, log.settings.get(setting, "unknown"), wanted, _set(log.name, setting, wanted)
            )


def _common(topic: TopicDescription, *, is_log: bool, compacted: bool) -> Iterator[TopicProblem]:
    policy, in_sync = topic.settings.get("cleanup.policy", "unknown"), int(topic.settings.get("min.insync.replicas", 1))
    wanted = "compact" if compacted else "delete"
    if policy != wanted and not is_log:
        yield TopicProblem(topic.name, "cleanup.policy", policy, wanted, _set(topic.name, "cleanup.policy", wanted))
    if in_sync > topic.replication:
        yield TopicProblem(
            topic.name,
            "min.insync.replicas",
            str(in_sync),
            f"{topic.replication} at most",
            _set(topic.name, "min.insync.replicas", str(max(1, topic.replication - 1))),
        )
    if topic.offline:
        advice = "partitions have no leader: bring their brokers back"
        led = f"{topic.partitions - topic.offline}"
        yield TopicProblem(topic.name, "leaders", led, f"{topic.partitions}", advice, passes=True)
    yield from _notes(topic)


def _notes(topic: TopicDescription) -> Iterator[TopicProblem]:
    if topic.under_replicated and not topic.offline:
        advice = "replicas are behind, or their brokers are away"
        yield TopicProblem(
            topic.name,
            "partitions in sync",
            str(topic.partitions - topic.under_replicated),
            str(topic.partitions),
            advice,
            fault=False,
        )
    if topic.settings.get("unclean.leader.election.enable") == "true":
        setting = "unclean.leader.election.enable"
        yield TopicProblem(topic.name, setting, "true", "false", _set(topic.name, setting, "false"), fault=False)


def _sizes(present: dict[str, TopicDescription], topics: Topics) -> Iterator[TopicProblem]:
    """Each topic must take the largest message that the service may have to write to it."""
    partitions = present[topics.pages].partitions if topics.pages in present else 1
    for name, least in least_message_bytes(topics, partitions).items():
        if name in present and _max_bytes(present[name]) < least:
            found, setting = str(_max_bytes(present[name])), "max.message.bytes"
            yield TopicProblem(name, setting, found, f"{least} at least", _set(name, setting, str(least)))


def _max_bytes(topic: TopicDescription) -> int:
    return int(topic.settings.get("max.message.bytes", 0))


def _set(topic: str, setting: str, value: str) -> str:
    return f"kafka-configs.sh --alter --topic {topic} --add-config {setting}={value}"
