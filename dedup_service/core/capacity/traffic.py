"""What goes through the brokers: bytes a second into and out of each topic, and what the topics keep.

Every replica of every shard and every resolver reads the whole log and all outcomes; resolvers read the answers of all
replicas, too. All replicas of a shard write the same answers and all resolvers the same outcomes: readers take the
first of each, but all of them are written and kept.
"""

from dataclasses import dataclass

from dedup_service.core.capacity.unit_costs import UnitCosts
from dedup_service.core.capacity.workload import Workload

LOG = "fingerprints"
"""The topic that is the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTraffic:
    """One topic.

    Attributes:
        topic: Its name.
        in_bytes: Bytes a second that producers write.
        readers: Processes that read all of it; members of one consumer group count as one.
        stored_bytes: What it keeps in the end, one replica.
        kept: For how long, in words.
        basis: The constants that the figures come from, by their names in `UnitCosts`.
    """

    topic: str
    in_bytes: float
    readers: int
    stored_bytes: float
    kept: str
    basis: tuple[str, ...]

    @property
    def out_bytes(self) -> float:
        """Bytes a second that readers take."""
        return self.in_bytes * self.readers


def topic_traffic(workload: Workload, shards: int, replicas: int, costs: UnitCosts) -> tuple[TopicTraffic, ...]:
    """Return the topics of a plan.

    Args:
        workload: The pages.
        shards: Shards S.
        replicas: Replicas of each shard.
        costs: The constants.

    Returns:
        `pages`, `fingerprints` (the log), `candidates`, `outcomes`, and the outputs.
    """
    page_key = "html_bytes" if workload.html else "letter_bytes"
    page_bytes = getattr(costs, page_key).value * (1 if workload.html else workload.text_letters)
    resolvers = int(costs.resolvers.value)
    holders = shards * replicas

    def within(kept_s: float) -> float:
        return min(workload.pages, workload.rate * kept_s)

    def add(topic: str, size: float, readers: int, pages: float, kept: str, *basis: str) -> TopicTraffic:
        return TopicTraffic(
            topic=topic,
            in_bytes=workload.rate * size,
            readers=readers,
            stored_bytes=pages * size,
            kept=kept,
            basis=basis,
        )

    week, brief = within(costs.pages_kept_s.value), within(costs.candidates_kept_s.value)
    kept_pages, kept_brief = _days(costs.pages_kept_s.value), _days(costs.candidates_kept_s.value)
    return (
        add("pages", page_bytes, 2, week, kept_pages, page_key, "pages_kept_s"),
        add(
            LOG,
            costs.log_page.value,
            holders + resolvers,
            workload.pages,
            "forever",
            "log_page",
            "resolvers",
        ),
        add(
            "candidates",
            costs.candidates_page.value * replicas,
            resolvers,
            brief,
            kept_brief,
            *("candidates_page", "resolvers", "candidates_kept_s"),
        ),
        add(
            "outcomes",
            costs.outcome_page.value * resolvers,
            holders,
            workload.pages,
            "forever",
            *("outcome_page", "resolvers"),
        ),
        add(
            "outputs",
            page_bytes + costs.verdict_bytes.value,
            1,
            week,
            kept_pages,
            *(page_key, "verdict_bytes", "pages_kept_s"),
        ),
    )


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:g}d"
