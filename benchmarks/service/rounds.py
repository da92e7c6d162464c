"""One round of chaos: services, a stream, faults at random, and then the question whether everything is right.

What happens is a function of the round's seed, but for the machine's own timing. Two lanes of faults run beside the
stream, one for services and one for brokers. When all faults are over, every service runs, and the stream has to be
done within a bounded time; a service that stands still is asked where (SIGABRT makes Python write its threads).
A broker that is killed may lose the end of a transaction
(`dedup_service.runtime.kafka.control.hanging_transactions`); the round then does
what an operator does, `twinsieve topics repair-transactions`, and counts it: everything has to be right after that.
A folder keeps everything that is needed to understand a failure: history, logs, state folders, topics.
"""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.service.broker_faults import BROKER_FAULTS, roll_brokers
from benchmarks.service.checking import Findings, check
from benchmarks.service.faults import SERVICE_FAULTS
from benchmarks.service.operators import OPERATIONS
from benchmarks.service.processes import Fleet, ServiceProcess
from benchmarks.service.publishing import PacedPublisher
from benchmarks.service.reading import Tail, end_of
from benchmarks.service.stream import Sent, stream
from benchmarks.service.world import Fault, FaultTargets
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.control.hanging_transactions import find_hanging, repair
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from deploy.kafka import Cluster

__all__ = ["Plan", "Result", "run_round"]

GROUP = "chaos"
PARTITIONS = 6
SESSION_S = 2.5
TRANSACTION_S = 5.0
DRAIN_S = 10.0
PATIENCE_S = 120.0
STILL_S = 25.0
"""Without an answer for so long, well above sessions and transactions, somebody would look."""

MAX_CRASHES = 20
FIRST_PAGES = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """What a round consists of.

    early: faults strike while the services still start, not once they answer. pause_s: between two faults of a lane, at
    most.
    """

    seed: str
    pages: int
    brokers: int
    rate: int
    service_faults: tuple[Fault, ...]
    broker_faults: tuple[Fault, ...]
    services: int = 3
    action: str | None = None
    early: bool = False
    pause_s: float = 4.0

    @classmethod
    def of(cls, seed: str, pages: int = 2000, *, seconds: float = 12.0) -> "Plan":
        """Draw a round. seconds: the stream lasts, where nothing holds it up."""
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
            action = None  # a service that names an action does not start after another one was set
        rate = int(pages / seconds)
        early = rng.random() < 0.25
        return cls(seed, pages, brokers, rate, tuple(service_faults), tuple(broker_faults), action=action, early=early)


@dataclass
class Result:
    """complaints: none where all is well. counts: of records. faults: that struck. crashes: services that ended."""

    plan: Plan
    complaints: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    crashes: list[str] = field(default_factory=list)
    seconds: float = 0.0


def run_round(plan: Plan, folder: Path) -> Result:
    """Run a round in `folder`, which stays; its owner removes it where the result is good."""
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    result = Result(plan)
    result.faults.update(fault.__name__ for fault in (*plan.service_faults, *plan.broker_faults))
    sent = list(stream(random.Random(f"stream {plan.seed}").randrange(1 << 32), plan.pages))
    with (folder / "history.log").open("a", buffering=1) as history:

        def tell(text: str) -> None:
            history.write(f"{time.time():.3f} {time.monotonic() - began:7.2f} s  {text}\n")

        tell(f"{plan}")
        with Cluster(plan.brokers) as cluster:
            _Round(plan, folder, cluster, sent, tell, result).run()
    result.seconds = time.monotonic() - began
    return result


class _Round:
    def __init__(
        self,
        plan: Plan,
        folder: Path,
        cluster: Cluster,
        sent: Sequence[Sent],
        tell: Callable[[str], None],
        result: Result,
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._cluster = cluster
        self._sent = sent
        self._tell = tell
        self._result = result
        self._topics = Topics("chaos.")
        self._loose: set[str] = set()
        self._warm = threading.Event()
        if plan.early:
            self._warm.set()

    def run(self) -> None:
        create(Connection(self._cluster.bootstrap), self._topics, self._layout())
        fleet = Fleet([self._service(number) for number in range(self._plan.services)], self._tell)
        world = FaultTargets(self._cluster, fleet, self._topics, GROUP, SESSION_S, self._tell, self._sent, self._loose)
        fleet.start()
        try:
            self._live(world)
        finally:
            stuck = fleet.close()
            self._tell(f"services ended: {[(s.name, s.exit_code, s.starts) for s in fleet.services]}")
        if stuck:
            self._result.complaints.append(f"did not end after SIGTERM: {stuck}")
        self._result.crashes += fleet.crashes
        self._result.counts.update(crashes=len(fleet.crashes), starts=sum(s.starts for s in fleet.services))
        self._check()

    def _layout(self) -> Layout:
        return Layout(partitions=PARTITIONS, replication=self._plan.brokers)

    def _live(self, world: FaultTargets) -> None:
        """Publish while faults strike, then wait until everything is answered."""
        seed = self._plan.seed
        threads = [
            _Lane(self._await_answers),
            _Lane(self._publish),
            _Lane(lambda: self._strike(world, self._plan.service_faults, random.Random(f"services {seed}"))),
            _Lane(lambda: self._strike(world, self._plan.broker_faults, random.Random(f"brokers {seed}"))),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._result.complaints += [f"lane failed: {thread.error!r}" for thread in threads if thread.error]
        self._tell("published, all faults over")
        self._wait_for_answers(world)

    def _publish(self) -> None:
        publisher = PacedPublisher(self._cluster.bootstrap, self._topics.pages, in_flight=300)
        publisher.publish(self._sent[:FIRST_PAGES], rate=None)
        self._warm.wait(PATIENCE_S)
        publisher.publish(self._sent[FIRST_PAGES:], rate=self._plan.rate)
        publisher.close()
        self._tell(f"published {publisher.published}, sent again {publisher.sends_again}")

    def _await_answers(self) -> None:
        """Let the rest begin once the services answer."""
        tail = Tail(self._cluster.bootstrap, (self._topics.verdicts, self._topics.dlq))
        deadline, answered = time.monotonic() + PATIENCE_S, 0
        while not self._warm.is_set() and answered < FIRST_PAGES // 2 and time.monotonic() < deadline:
            answered += sum(1 for _ in tail.poll())
        tail.close()
        self._tell(f"{answered} answers: faults may strike")
        self._warm.set()

    def _strike(self, world: FaultTargets, faults: Sequence[Fault], rng: random.Random) -> None:
        self._warm.wait(PATIENCE_S)
        for fault in faults:
            time.sleep(rng.uniform(0.2, self._plan.pause_s))
            fault(world, rng)

    def _wait_for_answers(self, world: FaultTargets) -> None:
        """Return when there is an answer to every input record, or complain."""
        topics = (self._topics.verdicts, self._topics.dlq)
        expected = end_of(self._cluster.bootstrap, self._topics.pages)
        tail = Tail(self._cluster.bootstrap, topics)
        deadline, answered = time.monotonic() + PATIENCE_S, 0
        moved_at = time.monotonic()
        while answered < expected and time.monotonic() < deadline and len(world.fleet.crashes) < MAX_CRASHES:
            if more := sum(1 for _ in tail.poll()):
                answered, moved_at = answered + more, time.monotonic()
            elif time.monotonic() - moved_at > STILL_S:
                self._settle()
                moved_at = time.monotonic()
        tail.close()
        self._tell(f"{answered} answers of {expected}")
        self._settle()
        if answered < expected:
            crashes = len(world.fleet.crashes)
            self._result.complaints.append(f"stood still: {answered} answers of {expected}, {crashes} crashes")
            for service in world.fleet.services:
                service.dump_threads()

    def _settle(self) -> None:
        """Do what an operator does where readers stand still: end the transactions whose end a broker lost."""
        connection = Connection(self._cluster.bootstrap)
        found = find_hanging(connection, self._topics)
        for one in found:
            self._tell(f"lost by a broker, settled: {one}")
        repair(connection, found)
        self._result.counts.update(settled=len(found))

    def _check(self) -> None:
        try:
            findings = check(self._cluster.bootstrap, self._topics, self._sent, frozenset(self._loose))
        except TimeoutError as error:
            findings = Findings([f"not readable to the end: {error}"])
        self._result.complaints += findings.complaints
        self._result.counts.update(findings.counts)
        for complaint in self._result.complaints:
            self._tell(f"COMPLAINT {complaint}")
        if self._result.complaints:
            self._cluster.save(self._folder / "brokers")
        (self._folder / "counts.json").write_text(json.dumps(self._result.counts))

    def _service(self, number: int) -> ServiceProcess:
        name = f"service-{number}"
        arguments = ["--bootstrap", self._cluster.bootstrap, "--prefix", self._topics.prefix, "--group", GROUP]
        arguments += ["--processes", "1", *(["--action", self._plan.action] if self._plan.action else [])]
        arguments += ["--session-timeout-s", str(SESSION_S), "--transaction-timeout-s", str(TRANSACTION_S)]
        arguments += [
            "--snapshot-every",
            "150",
            "--max-rejected-share",
            "1",
            "--drain-s",
            str(DRAIN_S),
        ]
        return ServiceProcess(name, arguments, self._folder / name, self._folder / f"{name}.log")


class _Lane(threading.Thread):
    """A thread that keeps what went wrong in it."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # told by whoever joins
            self.error = error


def _drawn(rng: random.Random, faults: dict[Fault, int], count: int) -> list[Fault]:
    return rng.choices(list(faults), list(faults.values()), k=count)
