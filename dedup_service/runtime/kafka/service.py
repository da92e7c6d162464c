"""The service behind `twinsieve serve`: the two steps and their state, from start to stop.

Start: lock the state folder, check the topics, agree on the policy with the log, restore the deciding state,
start the threads. Brokers that are unavailable at startup are retried for `start_s`.
Stop: fingerprinting stops first and commits its started chunks; then deciding writes what the log has by
then; both within one budget, a fifth of which is for closing. A clean stop is not required: whatever was not
committed is done again after the next start.
Invariant: a step that fails ends the service with its error; the other step does not continue alone.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from dedup_service.core.decision.replica import Replica
from dedup_service.core.log_records import Policy, PolicyRecord
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.shards.shard import ShardNumber
from dedup_service.core.verdict import Action
from dedup_service.runtime.events import Observer, Observers, ProblemEvent, RestoreEvent
from dedup_service.runtime.groups.canonical_table import TablePosition
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.errors import BrokerError
from dedup_service.runtime.kafka.client.log_appender import LogAppender
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.retry import Backoff, ThrottledWarning
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.control.operator_records import (
    RequestedPolicy,
    begun_with,
    binding_of,
    check_policy,
    first_policy,
    require_group,
)
from dedup_service.runtime.kafka.monitor import BacklogMonitor, watch_interval_s
from dedup_service.runtime.kafka.shards.answer_reader import AnswerReader
from dedup_service.runtime.kafka.shards.restore import answered_to, restore_resolver, restore_shard
from dedup_service.runtime.kafka.shards.shard_step import SHARD, ShardStep
from dedup_service.runtime.kafka.shards.sharded_log import ShardedLog
from dedup_service.runtime.kafka.state.canonical_state import CANONICAL_PAGES, restore_groups, written_position
from dedup_service.runtime.kafka.state.local_state import PAGES_FOLDER, LocalState
from dedup_service.runtime.kafka.state.mounted_bases import (
    BASE_OPTION,
    BASES_FOLDER,
    BaseUnusableError,
    MountedBases,
    given_by,
    offered_bases,
    require_bases,
)
from dedup_service.runtime.kafka.state.restore import RestoredReplica, restore
from dedup_service.runtime.kafka.state.step_offsets import (
    BACKFILL_DECIDED,
    DECIDE,
    FINGERPRINT,
    Begins,
    StepOffsets,
    require_finished,
)
from dedup_service.runtime.kafka.status import ServiceStatus
from dedup_service.runtime.kafka.steps.canonical_pages import CANONICAL, CanonicalStep
from dedup_service.runtime.kafka.steps.dead_letter_limit import RejectionLimit
from dedup_service.runtime.kafka.steps.deciding import MAX_PENDING_OUTCOMES, DecideStep
from dedup_service.runtime.kafka.steps.fingerprinting import FingerprintStep
from dedup_service.runtime.kafka.steps.in_flight import InFlightLimits
from dedup_service.runtime.kafka.steps.replica_queries import QueryTimeoutError
from dedup_service.runtime.kafka.topics import OutputMode, Topics, require_canonical, require_shards
from dedup_service.runtime.memory_limit import ProcessMemoryLimit
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.workers.page_limits import PAGE_TIMEOUT_S
from dedup_service.runtime.workers.pool import PoolState
from dedup_service.runtime.workers.preparation import Preparer

__all__ = ["CANONICAL", "DECIDE", "FINGERPRINT", "SHARD", "Service", "ServiceSettings"]

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_BYTES = 32 << 20
"""Size limit of one message, unpacked: the longest dead letter with its headers."""

_BASE_PAUSE_S = 10.0
"""Between two looks for a base that is not there, at most: each begins the start again."""

_DRAIN_SHARE = 0.8
"""Share of `drain_s` in which the steps may start new work; the rest is for a last turn and for closing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Settings of a service process. Only `space`, `rule`, `action` and `keep` change verdicts.

    state: folder of this process. prefix: of topics, consumer groups, instances and transactional ids, so that two
    sets share nothing. group: name of the service; one set of topics has one. steps: fingerprint, decide, or both;
    shard; canonical.
    instance: name of this process in its groups; None takes the one in the state folder.
    rule, action, keep: None takes those of the log. processes: workers that prepare pages.
    page_timeout_s: limit on the preparation of a page. rejection_limit: on records that are not pages.
    start_s: how long to wait for unavailable brokers at startup; later the service waits indefinitely.
    drain_s: budget of a stop. transaction_timeout_s: after which the broker aborts the transaction of a
    frozen process. session_timeout_s: after which the partitions of a process that died are reassigned. stall_s: a
    partition whose records wait longer than that while none is done makes its process not ready; give more than
    twice `page_timeout_s`. A resolver whose answers are deleted waits so long for others.
    outputs: what is written for a page.
    shard: which shard this process is, of the step `shard`. resolved_shards: how many shards answer to the deciding
    step; None if it has all entries itself. verify: compare the answers of replicas. answer_all: a shard answers to
    messages that have an answer, too.
    snapshot_every: minimum number of log records between two snapshots. max_memory_bytes: of this process, if it
    decides (see `runtime.memory_limit`). bases: of the log, folder or address by name; an empty log begins with them.
    """

    connection: Connection
    state: Path
    group: str = "twinsieve"
    prefix: str = ""
    steps: frozenset[str] = frozenset({FINGERPRINT, DECIDE})
    instance: str | None = None
    space: SpaceOptions = field(default_factory=SpaceOptions)
    rule: MatchRule | None = None
    action: Action | None = None
    keep: Keep | None = None
    processes: int = 1
    page_timeout_s: float = PAGE_TIMEOUT_S
    rejection_limit: RejectionLimit = field(default_factory=RejectionLimit)
    start_s: float = 60.0
    drain_s: float = 30.0
    transaction_timeout_s: float = 10.0
    session_timeout_s: float = 6.0
    stall_s: float = 90.0
    snapshot_every: int = 100_000
    max_memory_bytes: int | None = None
    outputs: OutputMode = OutputMode.PAGES
    shard: ShardNumber | None = None
    resolved_shards: int | None = None
    verify: bool = False
    answer_all: bool = False
    bases: Mapping[str, str] = field(default_factory=dict)

    @property
    def group_id(self) -> str:
        """Consumer group of the fingerprinting step; that of the deciding step has `.decide` added."""
        return f"{self.prefix}{self.group}"


Step = FingerprintStep | DecideStep | ShardStep | CanonicalStep
Steps = dict[str, Step]


class Service:
    """One process of the service. observers: receive its events."""

    def __init__(self, settings: ServiceSettings, observers: Iterable[Observer] = ()) -> None:
        self._settings = settings
        self._topics = Topics(settings.prefix)
        self._observers = Observers(observers)
        self._monitor = BacklogMonitor(
            settings.connection, self._topics, settings.group_id, interval_s=watch_interval_s(settings.stall_s)
        )
        self._restore: RestoreEvent | None = None
        self._starting = "starting", time.monotonic()
        self._answered_at = time.monotonic()
        self._steps: Steps = {}
        self._preparer: Preparer | None = None
        self._waits_for = ""
        self._bases: MountedBases | None = None
        self._failure: BaseException | None = None
        self._drain_until = 0.0
        self._stop_by: float | None = None
        self._ended = threading.Event()

    def status(self) -> ServiceStatus:
        """Return the status of the service; may be called from any thread, at any time."""
        steps = tuple(step.status for step in list(self._steps.values()))
        backlog = self._monitor.backlog()
        return ServiceStatus(self._restore, steps, len(self._settings.steps), backlog, self._waits_for, self._starting)

    @property
    def space_options(self) -> SpaceOptions:
        """Options of the space in which pages are fingerprinted."""
        return self._settings.space

    @property
    def bases(self) -> MountedBases | None:
        """The bases of the log, None if it has none or this process has not opened them (yet)."""
        return self._bases

    def pool_state(self) -> PoolState | None:
        """Return the state of the worker pool, None if it is not started; may be called from any thread."""
        return None if self._preparer is None else self._preparer.pool_state()

    def ask(self, query: Callable[[Replica], T]) -> T:
        """Return `query(replica)`, computed between two turns of the deciding step.

        Call it from another thread than the step's.

        QueryTimeoutError if this process does not decide, has not started to, or is too busy.
        """
        step = self._steps.get(DECIDE)
        if not isinstance(step, DecideStep):
            raise QueryTimeoutError(
                "this process does not decide, or not yet: ask a process with --steps both or decide"
            )
        return step.queries.ask(query)

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set, then drain and return. Raises the error that ended a step."""
        settings = self._settings
        follows = settings.shard is not None or CANONICAL in settings.steps  # the policy of the log, whatever it is
        requested = None if follows else self._requested()
        if settings.max_memory_bytes is not None:
            ProcessMemoryLimit(settings.max_memory_bytes).require_room()
        with ExitStack() as stack:
            local = LocalState.open(
                settings.state,
                instance=settings.instance,
                snapshot_every=settings.snapshot_every,
                pages=CANONICAL_PAGES if CANONICAL in settings.steps else PAGES_FOLDER,
            )
            local.pages.report = self._report_start
            stack.callback(lambda: local.close(self.left_s()))
            stack.callback(lambda: self._monitor.close(self.left_s()))
            try:
                steps = self._start_steps(local, requested, stack, stop)
                if steps is not None:
                    self._steps = steps
                    self._run_steps(stop)
            finally:
                self._begin_stop()

    def _requested(self) -> RequestedPolicy:
        """Return the policy of the options."""
        settings = self._settings
        fingerprinter = build_fingerprinter(settings.space)
        is_bounded = settings.max_memory_bytes is not None
        space_id = fingerprinter.space_id
        return RequestedPolicy(
            space_id,
            settings.rule,
            settings.action,
            settings.keep,
            may_be_lower=is_bounded,
            bases=partial(offered_bases, settings.bases, self._bases_folder, space_id, self._report_start)
            if settings.bases
            else None,
        )

    @property
    def _bases_folder(self) -> Path:
        return self._settings.state / BASES_FOLDER

    def _start_steps(
        self, local: LocalState, requested: RequestedPolicy | None, stack: ExitStack, stop: threading.Event
    ) -> Steps | None:
        """Build the steps, retrying while brokers or bases are unavailable; None if `stop` was set first.

        stack: closes the steps' resources. Raises BrokerError if no broker answers for `start_s`, however long a
        restore, or the wait for a base, took before.
        """
        backoff = Backoff(stop, warning=ThrottledWarning(_LOG, "the service cannot start yet"))
        without_base = Backoff(stop, longest_s=_BASE_PAUSE_S, warning=ThrottledWarning(_LOG, "nothing is decided yet"))
        self._answered_at = time.monotonic()
        while not backoff.stopped:
            with ExitStack() as attempt:
                try:
                    steps = self._build_steps(local, requested, attempt, stop)
                except BrokerError as error:
                    if not error.retryable or time.monotonic() > self._answered_at + self._settings.start_s:
                        raise
                    backoff.wait(error)
                    continue
                except BaseUnusableError as error:  # somebody has to put it there, whenever that is
                    self._waits_for, self._answered_at = str(error), time.monotonic()
                    without_base.wait(error)
                    continue
                self._waits_for = ""
                stack.push(attempt.pop_all())
                return steps
        return None

    def _build_steps(
        self, local: LocalState, requested: RequestedPolicy | None, stack: ExitStack, stop: threading.Event
    ) -> Steps | None:
        """One attempt of `_start_steps`."""
        settings = self._settings
        if CANONICAL in settings.steps:
            canonical = self._canonical_step(local, stack, stop)
            return None if canonical is None else {CANONICAL: canonical}
        if requested is None:
            shard = self._shard_step(local, stack, stop)
            return None if shard is None else {SHARD: shard}
        binding = binding_of(settings.connection, self._topics, settings.group_id, settings.outputs)
        log = LogConsumer(settings.connection, self._topics.fingerprints)
        stack.callback(log.close)
        first = first_policy(settings.connection, self._topics, log, requested, binding)
        # Offsets of a topic that was made again lack what the first one had: the groups' then count.
        begins = first.begins if first.offsets == binding.offsets else None
        self._monitor.start()
        steps: Steps = {}
        if DECIDE in settings.steps:
            offsets = self._offsets(begins, stack)
            bases = self._mounted(first.policy, requested.space_id, stack)
            step = self._decide_step(local, log, requested, first, binding.pages, offsets, bases, stop)
            if step is None:
                return None
            steps[DECIDE] = step
        elif given_by(settings.bases) == BASE_OPTION:  # a variable may be set for all processes of a deployment
            require_bases(first.policy, settings.bases)
        if stop.is_set():
            return None
        if FINGERPRINT in settings.steps:
            preparer = Preparer(
                settings.space,
                settings.processes,
                timeout_s=settings.page_timeout_s,
                keep_text=False,
                chunk=InFlightLimits().chunk_records,
            )
            stack.callback(preparer.close, 0.0)  # once the step has ended, nobody takes what its workers still do
            self._preparer = preparer
            steps[FINGERPRINT] = self._fingerprint_step(
                local.instance, preparer, requested.space_id, binding.pages, self._offsets(begins, stack), log.first
            )
        return steps

    def _decide_step(
        self,
        local: LocalState,
        log: LogConsumer,
        requested: RequestedPolicy,
        first: PolicyRecord,
        pages: str,
        offsets: StepOffsets,
        bases: MountedBases | None,
        stop: threading.Event,
    ) -> DecideStep | None:
        """Restore the state and return the step that continues from it; None if `stop` was set first."""
        settings = self._settings
        memory = None if settings.max_memory_bytes is None else ProcessMemoryLimit(settings.max_memory_bytes)
        known = {**offsets.of(DECIDE), **offsets.of(BACKFILL_DECIDED)}
        written = {(topic, partition): offset for (topic, partition), offset in known.items()}
        sharded: ShardedLog | None = None
        restored: RestoredReplica | None
        if settings.resolved_shards is not None:
            resolver = self._resolver(settings.resolved_shards, local, log, first, written, bases, stop)
            if resolver is None:
                return None
            restored, sharded = resolver
        else:
            restored = restore(
                local,
                log,
                written,
                progress=self._report_restore,
                stop=stop,
                max_waiting=MAX_PENDING_OUTCOMES,
                pages=self._topics.pages,
                memory=memory,
                bases=bases,
            )
        if restored is None:
            return None

        def check(replica: Replica) -> None:
            if replica.policy is None:
                return
            check_policy(replica.policy, requested)
            keep = replica.policy.keep
            if requested.keep is None and keep:
                _LOG.info("the log keeps %s, as it was told before: `policy set --keep` changes it", keep)

        if restored.position >= restored.end:
            check(restored.replica)
        return DecideStep(
            settings.connection,
            self._topics,
            settings.group_id,
            local,
            restored,
            log,
            self._producer(f"{DECIDE}.{local.instance}"),
            self._observers,
            offsets=offsets,
            topic_id=pages,
            lag=lambda: self._monitor.backlog().lag(DECIDE),
            check=check,
            memory=memory,
            outputs=settings.outputs,
            sharded=sharded,
            session_timeout_s=settings.session_timeout_s,
            retracted=frozenset if bases is None else bases.retracted,
        )

    def _mounted(self, policy: Policy, space_id: str, stack: ExitStack) -> MountedBases | None:
        """Open the bases of a log, which `stack` closes; None if it has none.

        BaseUnusableError if one is not there; ConfigurationError if others are given.
        """
        require_bases(policy, self._settings.bases)
        if not policy.bases:
            return None
        given, folder = self._settings.bases, self._bases_folder
        bases = MountedBases.open(policy.bases, given, folder, space_id, self._report_start)
        stack.callback(bases.close)
        self._bases = bases
        return bases

    def _resolver(
        self,
        shards: int,
        local: LocalState,
        log: LogConsumer,
        first: PolicyRecord,
        written: dict[tuple[str, int], int],
        bases: MountedBases | None,
        stop: threading.Event,
    ) -> tuple[RestoredReplica, ShardedLog] | None:
        """Return the state of a resolver and the log that it follows; None if `stop` was set first."""
        settings, topics, log_id = self._settings, self._topics, first.log or ""
        require_shards(settings.connection, topics, shards)
        resolver = restore_resolver(shards, local, log, log_id, first.policy, written, topics, stop=stop, bases=bases)
        if resolver is None:
            return None
        self._report_restore(RestoreEvent(0, 0, 0.0, done=True))
        answers = AnswerReader(
            settings.connection,
            topics.candidates,
            shards,
            log_id,
            done=resolver.done,
            positions=resolver.positions,
            verify=settings.verify,
            based_on=first.policy.based_on,
        )
        appender = self._appender(f"the resolver of {local.instance}")
        sharded = ShardedLog(
            log,
            answers,
            resolver.names,
            appender,
            topics.outcomes,
            log_id,
            lambda problem: self._observers.problem(ProblemEvent(DECIDE, "append_lost", problem)),
            lost_after_s=settings.stall_s,
        )
        return resolver.restored, sharded

    def _shard_step(self, local: LocalState, stack: ExitStack, stop: threading.Event) -> ShardStep | None:
        """Restore a shard and return its step; None if `stop` was set first."""
        settings, topics, number = self._settings, self._topics, self._settings.shard
        assert number is not None
        log = LogConsumer(settings.connection, topics.fingerprints)
        stack.callback(log.close)
        first = begun_with(settings.connection, topics, log)
        require_group(topics, first, settings.group_id)
        require_shards(settings.connection, topics, number.of)
        log_id = first.log or ""
        answered = -1 if settings.answer_all else answered_to(settings.connection, topics.candidates, number, log_id)
        bases = self._mounted(first.policy, first.policy.space_id, stack)
        restored = restore_shard(
            number, local, log, log_id, first.policy, topics, answered=answered, stop=stop, bases=bases
        )
        if restored is None:
            return None
        self._report_restore(RestoreEvent(0, 0, 0.0, done=True))
        outcomes = LogConsumer(settings.connection, topics.outcomes)
        stack.callback(outcomes.close)
        outcomes.seek(restored.outcomes_at)
        appender = self._appender(f"shard {number} of {local.instance}")
        return ShardStep(topics, local, restored, log, outcomes, appender, self._observers)

    def _canonical_step(self, local: LocalState, stack: ExitStack, stop: threading.Event) -> CanonicalStep | None:
        """Restore the groups and return their step; None if `stop` was set first."""
        settings, topics = self._settings, self._topics
        log = LogConsumer(settings.connection, topics.fingerprints)
        stack.callback(log.close)
        first = begun_with(settings.connection, topics, log)
        require_group(topics, first, settings.group_id)  # its name is that of the transactions
        require_canonical(settings.connection, topics)
        bases = self._mounted(first.policy, first.policy.space_id, stack)
        producer = self._producer(CANONICAL)
        stack.callback(producer.close)
        producer.open(stop)
        if stop.is_set():
            return None

        def look() -> TablePosition:
            return written_position(settings.connection, topics)

        written = look()
        restored = restore_groups(
            local, log, first.log or "", written, stop=stop, progress=self._report_restore, bases=bases
        )
        if restored is None:
            return None
        self._report_restore(RestoreEvent(0, 0, 0.0, done=True))
        return CanonicalStep(topics.canonical, local, restored, written, look, log, producer, self._observers)

    def _appender(self, name: str) -> LogAppender:
        settings = self._settings
        return LogAppender(settings.connection, name, timeout_s=settings.transaction_timeout_s, max_bytes=_MAX_BYTES)

    def _report_start(self, what: str, done: int, total: int) -> None:
        """Note how far the start is; any thread may call it."""
        self._starting = f"{what}: {done:,}" + (f" of {total:,}" if total else ""), time.monotonic()

    def _report_restore(self, event: RestoreEvent) -> None:
        self._restore, self._answered_at = event, time.monotonic()
        self._observers.restore(event)

    def _offsets(self, begins: Begins, stack: ExitStack) -> StepOffsets:
        """Return how far the steps are; StateError if the topics are what an interrupted replay left.

        stack: closes them, unless the step that they are given to has done so.
        """
        offsets = StepOffsets(self._settings.connection, self._topics, begins)
        stack.callback(offsets.close)
        offsets.refresh()
        require_finished(self._topics, offsets)
        return offsets

    def _fingerprint_step(
        self, instance: str, preparer: Preparer, space_id: str, pages: str, offsets: StepOffsets, first: int
    ) -> FingerprintStep:
        settings = self._settings
        return FingerprintStep(
            settings.connection,
            self._topics,
            settings.group_id,
            instance,
            space_id,
            preparer,
            self._appender(f"the fingerprinting step of {instance}"),
            settings.rejection_limit,
            self._observers,
            offsets=offsets,
            topic_id=pages,
            lag=lambda: self._monitor.backlog().lag(FINGERPRINT),
            session_timeout_s=settings.session_timeout_s,
            first=first,
        )

    def _producer(self, name: str) -> TransactionalProducer:
        settings = self._settings
        transactional_id = f"{settings.group_id}.{name}"
        return TransactionalProducer(
            settings.connection, transactional_id, timeout_s=settings.transaction_timeout_s, max_bytes=_MAX_BYTES
        )

    def _run_steps(self, stop: threading.Event) -> None:
        """Run the steps in threads; at a stop end them in order, fingerprinting first, within the budget."""
        order = [name for name in (FINGERPRINT, SHARD, CANONICAL, DECIDE) if name in self._steps]
        stops = {name: threading.Event() for name in order}
        threads = {name: self._start(name, stops[name]) for name in order}
        while not stop.is_set() and not self._ended.wait(0.1):
            pass
        self._begin_stop()
        for name in order:
            stops[name].set()
            threads[name].join(self.left_s())
            if threads[name].is_alive():
                _LOG.warning(
                    "step %s did not stop in time; what it had not committed will be done again after the next start",
                    name,
                )
        if self._failure is not None:
            raise self._failure

    def _begin_stop(self) -> None:
        """Let the budget of the stop begin now, unless it has."""
        if self._stop_by is None:
            now = time.monotonic()
            self._drain_until = now + _DRAIN_SHARE * self._settings.drain_s
            self._stop_by = now + self._settings.drain_s

    def left_s(self) -> float:
        """Return the seconds that are left of the budget of a stop; all of it if none has begun."""
        if self._stop_by is None:
            return self._settings.drain_s
        return max(0.0, self._stop_by - time.monotonic())

    def _start(self, name: str, stop: threading.Event) -> threading.Thread:
        def run() -> None:
            try:
                self._steps[name].run(stop, lambda: self._drain_until)
            except BaseException as error:  # any error of a step ends the service
                self._failure = self._failure or error
            finally:
                self._ended.set()

        thread = threading.Thread(target=run, name=f"twinsieve-{name}", daemon=True)
        thread.start()
        return thread
