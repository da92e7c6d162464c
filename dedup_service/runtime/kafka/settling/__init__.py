"""Transactions that a broker decided and never ended: found, and ended as they were decided.

Why: Apache Kafka 4.3.1 takes a partition without a leader for a deleted one and leaves out the marker that would end
a transaction there (KAFKA-20734). Whoever reads committed records stands still at that place for ever: a consumer of
`verdicts`, or the service at its log. `kafka-transactions.sh abort` would let readers go on, but takes back what the
coordinator has committed: pages would stay without a verdict.
"""

from dedup_service.runtime.kafka.settling.ending import settle
from dedup_service.runtime.kafka.settling.endless import Endless, find_endless
from dedup_service.runtime.kafka.settling.history import Outcome

__all__ = ["Endless", "Outcome", "find_endless", "settle"]
