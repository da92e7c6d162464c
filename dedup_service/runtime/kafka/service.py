"""`twinsieve serve` without its command line: the two steps, their state, and how they begin and end.

Begin: state folder locked, topics checked, policy agreed with the log, deciding state restored; then the threads.
Brokers that are away at the beginning are waited for, a while.
End: fingerprinting stops first and commits what it has in hand, deciding writes what the log has by then, within one
budget. Nothing depends on a good end: whatever was not committed is done again by whoever comes next.
Invariant: a step that fails ends the service with its error; no half of it goes on alone.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from dedup_service.core.decision.replica import Replica
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.events import Observer, Observers, RestoreEvent
from dedup_service.runtime.kafka.client.admin import committed_offsets
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.errors import BrokerError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.retry import Backoff, ThrottledWarning
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.control.operator_records import RequestedPolicy, check_policy, first_policy
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.restore import restore
from dedup_service.runtime.kafka.status import ServiceStatus
from dedup_service.runtime.kafka.steps.dead_letter_limit import RejectionLimit
from dedup_service.runtime.kafka.steps.deciding import DecideSettings, DecideStep
from dedup_service.runtime.kafka.steps.fingerprinting import FingerprintStep
from dedup_service.runtime.kafka.steps.in_flight import InFlightLimits
from dedup_service.runtime.kafka.steps.replica_queries import QueryTimeoutError
from dedup_service.runtime.kafka.topics import Topics, require_log
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.workers.pool import PoolState
from dedup_service.runtime.workers.preparation import Preparer

__all__ = ["DECIDE", "FINGERPRINT", "Service", "ServiceSettings"]

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

FINGERPRINT, DECIDE = "fingerprint", "decide"
_MAX_BYTES = 32 << 20
"""Of one message, unpacked: the longest dead letter with its headers."""

_LAST_TURN_S = 5.0
"""What a step may need beyond the budget to end the turn it is in and close its clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """What a service is started with; none but space, rule and action changes a verdict.

    steps: fingerprint, decide, or both. instance: name of this process in its groups; None: the state folder's own.
    rule, action: None takes the log's. page_timeout_s: longest preparation of a page. drain_s: budget of a stop.
    start_s: how long brokers may be away at the start; later they may be for ever.
    transaction_timeout_s: after which the broker ends the transaction of a process that froze.
    session_timeout_s: after which the partitions of a process that is gone are another's.
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
    processes: int = 1
    shards: int = 1
    page_timeout_s: float = 30.0
    rejection_limit: RejectionLimit = field(default_factory=RejectionLimit)
    start_s: float = 60.0
    drain_s: float = 30.0
    transaction_timeout_s: float = 10.0
    session_timeout_s: float = 6.0
    snapshot_every: int = 100_000


Step = FingerprintStep | DecideStep
Steps = dict[str, Step]


class Service:
    """One process of the service. observers: are told what was done."""

    def __init__(self, settings: ServiceSettings, observers: Iterable[Observer] = ()) -> None:
        self._settings = settings
        self._topics = Topics(settings.prefix)
        self._observers = Observers(observers)
        self._restore: RestoreEvent | None = None
        self._steps: Steps = {}
        self._preparer: Preparer | None = None
        self._failure: BaseException | None = None
        self._ended = threading.Event()

    def status(self) -> ServiceStatus:
        """Return where the service stands; may be asked from any thread, at any time."""
        steps = tuple(step.status for step in list(self._steps.values()))
        return ServiceStatus(self._restore, steps, len(self._settings.steps))

    @property
    def space_options(self) -> SpaceOptions:
        """Return how fingerprints are made here."""
        return self._settings.space

    def pool_state(self) -> PoolState | None:
        """Return how the worker processes stand, None where there are none yet; from any thread."""
        return None if self._preparer is None else self._preparer.pool_state()

    def ask(self, question: Callable[[Replica], T]) -> T:
        """Return what `question` finds in the replica, between two turns of the deciding step; from any other thread.

        QueryTimeoutError where this process does not decide, has not begun to, or is too busy.
        """
        step = self._steps.get(DECIDE)
        if not isinstance(step, DecideStep):
            raise QueryTimeoutError("this process does not decide, or not yet: ask one with --steps both or decide")
        return step.questions.ask(question)

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set, then drain and return. Raises what ended a step."""
        settings = self._settings
        wanted = RequestedPolicy(build_fingerprinter(settings.space).space_id, settings.rule, settings.action)
        with ExitStack() as stack:
            local = LocalState.open(settings.state, instance=settings.instance, snapshot_every=settings.snapshot_every)
            stack.callback(local.close)
            steps = self._begun(local, wanted, stack, stop)
            if steps is not None:
                self._steps = steps
                self._run_steps(stop)

    def _begun(
        self, local: LocalState, wanted: RequestedPolicy, stack: ExitStack, stop: threading.Event
    ) -> Steps | None:
        """Return the steps, closed with `stack`, once the brokers allow it; None where `stop` came first."""
        backoff = Backoff(stop, warning=ThrottledWarning(_LOG, "the service cannot begin yet"))
        deadline = time.monotonic() + self._settings.start_s
        while not backoff.stopped:
            with ExitStack() as attempt:
                try:
                    steps = self._begin(local, wanted, attempt, stop)
                except BrokerError as error:
                    if not error.retryable or time.monotonic() > deadline:
                        raise
                    backoff.wait(error)
                    continue
                stack.push(attempt.pop_all())
                return steps
        return None

    def _begin(
        self, local: LocalState, wanted: RequestedPolicy, stack: ExitStack, stop: threading.Event
    ) -> Steps | None:
        """As `_begun`, in one try."""
        settings = self._settings
        require_log(settings.connection, self._topics)
        log = LogConsumer(settings.connection, self._topics.fingerprints)
        stack.callback(log.close)
        first_policy(settings.connection, self._topics, log, wanted)
        steps: Steps = {}
        if DECIDE in settings.steps:
            step = self._decide_step(local, log, wanted, stop)
            if step is None:
                return None
            steps[DECIDE] = step
        if FINGERPRINT in settings.steps:
            preparer = Preparer(
                settings.space,
                settings.processes,
                timeout_s=settings.page_timeout_s,
                inline=False,
                keep_text=False,
                chunk=InFlightLimits().chunk_records,
            )
            self._preparer = stack.enter_context(preparer)
            steps[FINGERPRINT] = self._fingerprint_step(local.instance, preparer, wanted.space_id)
        return steps

    def _decide_step(
        self, local: LocalState, log: LogConsumer, wanted: RequestedPolicy, stop: threading.Event
    ) -> DecideStep | None:
        """Restore, and return the step that goes on from there; None where `stop` came first."""
        settings = self._settings
        restored = restore(
            local,
            log,
            self._written(),
            shards=settings.shards,
            progress=self._restoring,
            stop=stop,
            max_waiting=DecideSettings().held_outcomes,
            pages=self._topics.pages,
        )
        if restored is None:
            return None
        if restored.replica.policy is not None:
            check_policy(restored.replica.policy, wanted)
        return DecideStep(
            settings.connection,
            self._topics,
            settings.group,
            local,
            restored,
            log,
            self._transactions(DECIDE, local.instance),
            self._observers,
            session_timeout_s=settings.session_timeout_s,
        )

    def _restoring(self, fact: RestoreEvent) -> None:
        self._restore = fact
        self._observers.restore(fact)

    def _written(self) -> dict[tuple[str, int], int]:
        """Return the offsets below which the deciding group has written everything."""
        offsets = committed_offsets(self._settings.connection, f"{self._settings.group}.{DECIDE}", self._topics.pages)
        return {(at.topic, at.partition): offset for at, offset in offsets.items()}

    def _fingerprint_step(self, instance: str, preparer: Preparer, space_id: str) -> FingerprintStep:
        settings = self._settings
        return FingerprintStep(
            settings.connection,
            self._topics,
            settings.group,
            instance,
            space_id,
            preparer,
            self._transactions(FINGERPRINT, instance),
            settings.rejection_limit,
            self._observers,
            session_timeout_s=settings.session_timeout_s,
        )

    def _transactions(self, step: str, instance: str) -> TransactionalProducer:
        settings = self._settings
        name = f"{settings.prefix}{settings.group}.{step}.{instance}"
        return TransactionalProducer(
            settings.connection, name, timeout_s=settings.transaction_timeout_s, max_bytes=_MAX_BYTES
        )

    def _run_steps(self, stop: threading.Event) -> None:
        """Run the steps in their threads; end them in order, fingerprinting first, within the budget."""
        order = [name for name in (FINGERPRINT, DECIDE) if name in self._steps]
        stops = {name: threading.Event() for name in order}
        threads = {name: self._start(name, stops[name]) for name in order}
        while not stop.is_set() and not self._ended.wait(0.1):
            pass
        deadline = time.monotonic() + self._settings.drain_s
        for name in order:
            stops[name].set()
            threads[name].join(max(0.0, deadline - time.monotonic()) + _LAST_TURN_S)
            if threads[name].is_alive():
                _LOG.warning("step %s did not end in time; what it had in hand will be done again", name)
        if self._failure is not None:
            raise self._failure

    def _start(self, name: str, stop: threading.Event) -> threading.Thread:
        def run() -> None:
            try:
                self._steps[name].run(stop, self._settings.drain_s)
            except BaseException as error:  # whatever it was, the service ends with it
                self._failure = self._failure or error
            finally:
                self._ended.set()

        thread = threading.Thread(target=run, name=f"twinsieve-{name}", daemon=True)
        thread.start()
        return thread
