"""One round of chaos: services, a stream, random faults, and a check of every output.

A round is a function of its seed, except for the machine's timing. Two lanes of faults run beside the
stream, one for services and one for brokers. After the last fault every service runs, and all records must
be answered within a bounded time. A service that makes no progress gets SIGABRT, so that Python writes the
stack of each thread to its log.

A broker that is killed may lose the end marker of a transaction
(`dedup_service.runtime.kafka.control.hanging_transactions`). The round then repairs it, as an operator would
with `twinsieve topics repair-transactions`, and counts it; all outputs must be right after that.

The log of a round with the fault `take_down_in_base` goes on from a base that is made for it, and a tenth of the
stream are copies of its pages.

The folder of a round has all that is needed to understand a failure: history, logs, state folders, topics.
"""

import json
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.consumer.fetcher import ConsumerRecord

from dedup_service.core.rules.layout import DEFAULT_LAYOUT
from dedup_service.interfaces.cli.support.step_options import BOTH, USED_BY
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.control.hanging_transactions import find_hanging, repair
from dedup_service.runtime.kafka.control.operator_records import begin_layout
from dedup_service.runtime.kafka.service import FINGERPRINT
from dedup_service.runtime.kafka.topics import Layout, OutputMode, Topics, create
from deploy.kafka import Cluster
from deploy.kafka.access_lists import DENY_BY_DEFAULT, AccessLists, needed
from tests.chaos.base_faults import BASE, RoundBase, take_down_in_base
from tests.chaos.broker_faults import BROKER_FAULTS, roll_brokers
from tests.chaos.checking import Findings, check
from tests.chaos.fault_targets import Fault, FaultTargets
from tests.chaos.faults import SERVICE_FAULTS, withdraw_access
from tests.chaos.network import NetworkGate
from tests.chaos.operators import OPERATIONS, operate
from tests.chaos.page_faults import PAGE_FAULTS
from tests.chaos.processes import Fleet, ServiceProcess
from tests.chaos.publishing import PacedPublisher
from tests.chaos.reading import Tail, end_of, read_all
from tests.chaos.shard_faults import NETWORK_FAULTS, SHARD_FAULTS, reshard
from tests.chaos.shard_processes import SLOTS, Role, ShardPlan
from tests.crawls.stream import Sent, stream
from tests.hangs import HANG_S
from tests.impatient_serve import VARIABLE

GROUP = "chaos"
PARTITIONS = 6
SESSION_S = 6.0
TRANSACTION_S = 10.0
DRAIN_S = 10.0
IMPATIENT = {"session_timeout_s": SESSION_S, "transaction_timeout_s": TRANSACTION_S, "snapshot_every": 150}
PATIENCE_S = 2 * HANG_S
"""For the last answer: with shards a dozen processes start again."""

SECONDS_PER_FAULT = 5.0

STILL_S = 25.0
"""Seconds without an answer after which an operator would look: well above all timeouts."""

MAX_CRASHES = 20
FIRST_PAGES = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of a round.

    early: faults begin while the services still start, not after their first answers. pause_s: the longest
    pause between two faults of a lane. recreate: at the end `pages` is deleted and created again.
    secured: services log in over TLS and may do what access lists say, some of which is withdrawn for a while.
    outputs: what the services write for a page. sharded: with shards and resolvers instead of whole services.
    """

    seed: str
    pages: int
    brokers: int
    rate: int
    service_faults: tuple[Fault, ...]
    broker_faults: tuple[Fault, ...]
    page_faults: tuple[Fault, ...] = ()
    recreate: bool = False
    secured: bool = False
    services: int = 3
    action: str | None = None
    early: bool = False
    pause_s: float = 4.0
    outputs: OutputMode = OutputMode.PAGES
    sharded: ShardPlan | None = None

    @classmethod
    def draw(cls, seed: str, pages: int = 2000, *, seconds: float = 12.0) -> "Plan":
        """Draw a plan. seconds: duration of the stream if nothing delays it."""
        rng = random.Random(f"plan {seed}")
        brokers = 3 if rng.random() < 0.2 else 1
        service_faults = _drawn(rng, SERVICE_FAULTS, rng.randint(2, 5))
        broker_faults = _drawn(rng, BROKER_FAULTS, rng.randint(0, 2))
        if brokers == 3:
            broker_faults.append(roll_brokers)
        action = "drop" if rng.random() < 0.15 else None
        if rng.random() < 0.3:
            service_faults += _drawn(rng, OPERATIONS, rng.randint(1, 2))
            rng.shuffle(service_faults)
            action = None  # a service refuses to start with another action than the policy's
        rate = int(pages / seconds)
        early = rng.random() < 0.25
        secured = rng.random() < 0.15
        if secured:
            service_faults.insert(rng.randrange(len(service_faults)), withdraw_access)
        return cls(
            seed,
            pages,
            brokers,
            rate,
            tuple(service_faults),
            tuple(broker_faults),
            tuple(_drawn(rng, PAGE_FAULTS, rng.randint(0, 3))),
            recreate=rng.random() < 0.15,
            secured=secured,
            action=action,
            early=early,
            outputs=OutputMode.VERDICTS if rng.random() < 0.2 else OutputMode.PAGES,
        )

    @classmethod
    def draw_sharded(cls, seed: str, pages: int, shards: int, replicas: int) -> "Plan":
        """Draw a plan with so many shards. The stream lasts about as long as the faults of processes."""
        rng = random.Random(f"plan of shards {seed}")
        sharded = ShardPlan.draw(rng, shards, replicas)
        brokers = 3 if rng.random() < 0.2 else 1
        service_faults = _drawn(rng, SHARD_FAULTS, rng.randint(4, 7))
        if sharded.isolated is not None:
            service_faults += _drawn(rng, NETWORK_FAULTS, rng.randint(1, 2))
        if rng.random() < 0.3:
            service_faults += _drawn(rng, OPERATIONS, rng.randint(1, 2))
        rng.shuffle(service_faults)
        if 2 * shards <= SLOTS and rng.random() < 0.25:
            service_faults.insert(rng.randrange(len(service_faults)), reshard)
        broker_faults = _drawn(rng, BROKER_FAULTS, rng.randint(0, 1))
        if brokers == 3:
            broker_faults.append(roll_brokers)
        return cls(
            seed,
            pages,
            brokers,
            int(pages / (SECONDS_PER_FAULT * len(service_faults))),
            tuple(service_faults),
            tuple(broker_faults),
            tuple(_drawn(rng, PAGE_FAULTS, rng.randint(0, 2))),
            early=rng.random() < 0.25,
            outputs=OutputMode.VERDICTS if rng.random() < 0.2 else OutputMode.PAGES,
            sharded=sharded,
        )


@dataclass
class Result:
    """Result of a round. complaints: empty on success; counts: of records; crashes: services that ended."""

    plan: Plan
    complaints: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    crashes: list[str] = field(default_factory=list)
    seconds: float = 0.0


def run_round(plan: Plan, folder: Path) -> Result:
    """Run a round in `folder`. The caller removes the folder of a good round."""
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    result = Result(plan)
    result.faults.update(fault.__name__ for fault in (*plan.service_faults, *plan.broker_faults, *plan.page_faults))
    sent = list(stream(random.Random(f"stream {plan.seed}").randrange(1 << 32), plan.pages))
    base = None
    if take_down_in_base in plan.service_faults:
        rng = random.Random(f"base {plan.seed}")
        base = RoundBase.make(folder / BASE, rng, DEFAULT_LAYOUT if plan.sharded is None else plan.sharded.layout)
        sent = base.mixed(sent, rng)
    with (folder / "history.log").open("a", buffering=1) as history:

        def log(text: str) -> None:
            history.write(f"{time.time():.3f} {time.monotonic() - began:7.2f} s  {text}\n")

        log(f"{plan}")
        settings = DENY_BY_DEFAULT if plan.secured else None
        with Cluster(plan.brokers, sasl=plan.secured, settings=settings) as cluster:
            _Round(plan, folder, cluster, sent, base, log, result).run()
    result.seconds = time.monotonic() - began
    return result


class _Round:
    def __init__(
        self,
        plan: Plan,
        folder: Path,
        cluster: Cluster,
        sent: Sequence[Sent],
        base: RoundBase | None,
        log: Callable[[str], None],
        result: Result,
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._cluster = cluster
        self._sent = sent
        self._base = base
        self._log = log
        self._result = result
        self._topics = Topics("chaos.")
        self._warm = threading.Event()
        if plan.early:
            self._warm.set()

    @property
    def _bootstrap(self) -> str:
        """The addresses for all but the services."""
        return self._cluster.inner_bootstrap if self._plan.secured else self._cluster.bootstrap

    def run(self) -> None:
        access = AccessLists(self._cluster) if self._plan.secured else None
        if access is not None:
            access.grant(needed(self._topics, GROUP))
        create(Connection(self._bootstrap), self._topics, self._layout())
        if self._base is not None:
            self._begin_with(self._base)
        elif self._plan.sharded is not None:
            begin_layout(Connection(self._bootstrap), self._topics, self._plan.sharded.layout)
        os.environ[VARIABLE] = json.dumps(IMPATIENT)
        fleet = Fleet(self._processes(), self._log)
        targets = FaultTargets(
            self._cluster,
            fleet,
            self._topics,
            GROUP,
            SESSION_S,
            self._log,
            self._sent,
            serve=self._extra_service,
            add=self._sharded_process,
            complain=self._result.complaints.append,
            access=access,
            empty_log=0 if self._plan.sharded is None and self._base is None else 1,
            base=self._base,
        )
        fleet.start()
        try:
            self._publish_under_faults(targets)
        finally:
            killed = fleet.close()
            self._close_gates(fleet)
            self._log(f"services ended: {[(s.name, s.exit_code, s.starts) for s in fleet.services]}")
        if killed:
            self._result.complaints.append(f"did not end after SIGTERM: {killed}")
        self._result.crashes += fleet.crashes
        if self._plan.sharded is not None:
            self._complain_of_ends(fleet)
        elif self._base is not None:
            self._result.complaints += [f"ended: {crash}" for crash in fleet.crashes if BASE in crash]
        self._result.counts.update(crashes=len(fleet.crashes), starts=sum(s.starts for s in fleet.services))
        self._check(targets)
        if self._plan.recreate:
            self._recreate_pages()

    def _begin_with(self, base: RoundBase) -> None:
        """Begin the log with a base, as an operator does before the first service."""
        options = {"--action": self._plan.action, "--keep": self._plan.sharded and self._plan.sharded.keep}
        given = [word for name, value in options.items() if value for word in (name, value)]
        done = operate(self._bootstrap, self._topics, "policy", "set", "--base", base.given, "--group", GROUP, *given)
        self._log(f"begun with a base: {done}")

    def _processes(self) -> list[ServiceProcess]:
        sharded = self._plan.sharded
        if sharded is None:
            return [self._service(number) for number in range(self._plan.services)]
        return [self._sharded_process(role) for role in sharded.roles()]

    def _sharded_process(self, role: Role) -> ServiceProcess:
        sharded, gate = self._plan.sharded, None
        assert sharded is not None
        if role.name == sharded.isolated:
            gate = NetworkGate([int(address.rsplit(":", 1)[1]) for address in self._bootstrap.split(",")])
        arguments = [*self._arguments(GROUP, role.steps), *role.options]
        folder = self._folder
        log = folder / f"{role.name}.log"
        return ServiceProcess(
            role.name, arguments, folder / role.name, log, kind=role.kind, gate=gate, module=sharded.module
        )

    def _close_gates(self, fleet: Fleet) -> None:
        for service in fleet.services:
            if service.gate is not None:
                service.gate.close()

    def _complain_of_ends(self, fleet: Fleet) -> None:
        """Complain of processes that ended with an error: no fault of these rounds has to end one.

        A transaction that a broker has lost may: the process says how it is repaired, and goes on when it was.
        """
        excused = "repair-transactions" if self._result.counts["repaired"] else None
        self._result.complaints += [f"ended: {one}" for one in fleet.crashes if excused is None or excused not in one]
        codes = {service.name: service.exit_code for service in fleet.services}
        bad = {name: code for name, code in codes.items() if code not in {0, -signal.SIGTERM, 128 + signal.SIGTERM}}
        if bad:
            self._result.complaints.append(f"ended after SIGTERM with {bad}")

    def _recreate_pages(self) -> None:
        """Delete `pages` and create it again: every service must refuse to start, saying why."""
        admin = KafkaAdminClient(bootstrap_servers=self._bootstrap.split(","))
        try:
            admin.delete_topics([self._topics.pages])
            while self._topics.pages in admin.list_topics():
                time.sleep(0.2)
        finally:
            admin.close()
        create(Connection(self._bootstrap), self._topics, self._layout())
        service = self._service(0)
        service.start()
        ended = service.ended_within(PATIENCE_S)
        self._log(f"pages created again: ended {ended} with {service.exit_code}: {service.last_line}")
        if service.exit_code != 1 or "created again" not in service.last_line:
            self._result.complaints.append(f"another `pages` was not refused: {service.exit_code} {service.last_line}")

    def _layout(self) -> Layout:
        slots = None if self._plan.sharded is None else SLOTS
        return Layout(partitions=PARTITIONS, replication=self._plan.brokers, slots=slots)

    def _publish_under_faults(self, targets: FaultTargets) -> None:
        """Publish while faults strike, then wait until every record is answered."""
        seed = self._plan.seed
        threads = [
            _Lane(self._await_answers),
            _Lane(self._publish),
            _Lane(lambda: self._strike(targets, self._plan.service_faults, random.Random(f"services {seed}"))),
            _Lane(lambda: self._strike(targets, self._plan.broker_faults, random.Random(f"brokers {seed}"))),
            _Lane(lambda: self._strike(targets, self._plan.page_faults, random.Random(f"pages {seed}"))),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._result.complaints += [f"lane failed: {thread.error!r}" for thread in threads if thread.error]
        self._log("published, all faults over")
        self._wait_for_answers(targets)

    def _publish(self) -> None:
        publisher = PacedPublisher(self._bootstrap, self._topics.pages, in_flight=300)
        publisher.publish(self._sent[:FIRST_PAGES], rate=None)
        self._warm.wait(PATIENCE_S)
        publisher.publish(self._sent[FIRST_PAGES:], rate=self._plan.rate)
        publisher.close()
        self._log(f"published {publisher.published}, sent again {publisher.resent}")

    def _await_answers(self) -> None:
        """Let faults and publishing begin when the services answer."""
        tail = Tail(self._bootstrap, (self._topics.verdicts, self._topics.dlq))
        deadline, answered = time.monotonic() + PATIENCE_S, 0
        while not self._warm.is_set() and answered < FIRST_PAGES // 2 and time.monotonic() < deadline:
            answered += sum(1 for _ in tail.poll())
        tail.close()
        self._log(f"{answered} answers: faults may strike")
        self._warm.set()

    def _strike(self, targets: FaultTargets, faults: Sequence[Fault], rng: random.Random) -> None:
        self._warm.wait(PATIENCE_S)
        for fault in faults:
            time.sleep(rng.uniform(0.2, self._plan.pause_s))
            fault(targets, rng)

    def _wait_for_answers(self, targets: FaultTargets) -> None:
        """Wait for an answer to every input record; add a complaint if they do not come."""
        topics = (self._topics.verdicts, self._topics.dlq)
        expected = end_of(self._bootstrap, self._topics.pages)  # an answer to each, however many were deleted
        tail = Tail(self._bootstrap, topics)
        deadline, answered = time.monotonic() + PATIENCE_S, 0
        moved_at = time.monotonic()
        while answered < expected and time.monotonic() < deadline and len(targets.fleet.crashes) < MAX_CRASHES:
            if more := sum(map(_records_answered, tail.poll())):
                answered, moved_at = answered + more, time.monotonic()
            elif time.monotonic() - moved_at > STILL_S:
                self._repair_transactions()
                moved_at = time.monotonic()
        tail.close()
        self._log(f"{answered} answers of {expected}")
        self._repair_transactions()
        if answered < expected:
            crashes = len(targets.fleet.crashes)
            self._result.complaints.append(f"no progress: {answered} answers of {expected}, {crashes} crashes")
            for service in targets.fleet.services:
                service.dump_threads()

    def _repair_transactions(self) -> None:
        """Write the end markers that a broker lost, as an operator does when readers make no progress."""
        connection = Connection(self._bootstrap)
        found = find_hanging(connection, self._topics)
        for one in found:
            self._log(f"lost by a broker, repaired: {one}")
        repair(connection, found)
        self._result.counts.update(repaired=len(found))

    def _check(self, targets: FaultTargets) -> None:
        pages = self._topics.pages
        try:
            published = {(record.key, record.value) for record in targets.gone.values()}
            published |= {(record.key, record.value) for record in read_all(self._bootstrap, [pages])[pages]}
            sent = [*self._sent, *(one for one in targets.extra if (one.key, one.value) in published)]
            any_again = targets.gone or (self._plan.sharded is not None and self._plan.sharded.keep)
            names = {one.truth.name for one in sent} if any_again else targets.loose  # any may have been lost
            if self._base is not None:
                names = names | self._base.taken_down_urls
            findings = check(
                self._bootstrap, self._topics, sent, frozenset(names), targets.gone, self._plan.outputs, self._base
            )
        except TimeoutError as error:
            findings = Findings([f"not readable to the end: {error}"])
        self._result.complaints += findings.complaints
        self._result.counts.update(findings.counts)
        for complaint in self._result.complaints:
            self._log(f"COMPLAINT {complaint}")
        if self._result.complaints:
            self._cluster.save(self._folder / "brokers")
        (self._folder / "counts.json").write_text(json.dumps(self._result.counts))

    def _extra_service(self, *, name: str, group: str) -> ServiceProcess:
        return self._service(name, group)

    def _service(self, number: int | str, group: str = GROUP) -> ServiceProcess:
        name = f"service-{number}"
        arguments = [*self._arguments(group), *(["--action", self._plan.action] if self._plan.action else [])]
        return ServiceProcess(name, arguments, self._folder / name, self._folder / f"{name}.log")

    def _arguments(self, group: str, steps: str = BOTH) -> list[str]:
        """Return the options of a process that runs `steps`: those of all that these use."""
        arguments = ["--bootstrap", self._cluster.bootstrap, "--prefix", self._topics.prefix, "--group", group]
        if self._plan.secured:
            options = self._folder / "client.properties"
            options.write_text("".join(f"{name}={value}\n" for name, value in self._cluster.client_options.items()))
            arguments += ["--properties", str(options)]
        more = {
            "outputs": self._plan.outputs.value,
            "processes": 1,
            "max_rejected_share": 1,
            "drain_s": DRAIN_S,
        }
        if self._base is not None and steps != FINGERPRINT:
            arguments += ["--base", self._base.given]
        for name, value in more.items():
            if steps in USED_BY[name]:
                arguments += [f"--{name.replace('_', '-')}", str(value)]
        return arguments


class _Lane(threading.Thread):
    """A thread that keeps the exception that ended it."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # reported after the join
            self.error = error


def _records_answered(answer: ConsumerRecord) -> int:
    """Return how many input records an answer is about: a dead letter may be about many that were deleted."""
    error = dict(answer.headers).get("twinsieve.error", b"").decode()
    many = re.match(r"(\d+) records up to offset", error)
    return 1 if many is None else int(many[1])


def _drawn(rng: random.Random, faults: dict[Fault, int], count: int) -> list[Fault]:
    return rng.choices(list(faults), list(faults.values()), k=count)
