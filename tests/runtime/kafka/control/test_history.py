"""What the transaction log says of a transaction that is open on a partition."""

import pytest

from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.control.hanging_transactions import (
    TransactionHistory,
    TransactionOutcome,
    TransactionRecord,
    TransactionState,
)

PARTITION = TopicPartition("verdicts", 5)
OTHER = TopicPartition("verdicts", 2)


def history(
    *steps: tuple[int, TransactionState, tuple[TopicPartition, ...]], producer_id: int = 7
) -> TransactionHistory:
    first, *rest = [
        TransactionRecord("t", producer_id, epoch, state, frozenset(partitions)) for epoch, state, partitions in steps
    ]
    built = TransactionHistory(first)
    for later in rest:
        built.add(later)
    return built


def test_the_last_decision_on_the_partition_counts():
    """A later transaction that did not include the partition does not change its outcome."""
    transactions = history(
        (0, TransactionState.ONGOING, (PARTITION,)),
        (0, TransactionState.PREPARE_ABORT, (PARTITION,)),
        (0, TransactionState.COMPLETE_ABORT, ()),
        (0, TransactionState.PREPARE_COMMIT, (PARTITION, OTHER)),
        (0, TransactionState.COMPLETE_COMMIT, ()),
        (0, TransactionState.PREPARE_ABORT, (OTHER,)),
    )
    assert transactions.outcome(PARTITION, 7, 0) == (TransactionOutcome.COMMIT, 0)
    assert transactions.outcome(OTHER, 7, 0) == (TransactionOutcome.ABORT, 0)
    assert transactions.topics == {"verdicts"}


def test_a_decision_may_raise_the_epoch():
    """Where a coordinator ends what an earlier instance left, the marker has the raised epoch, not a later one."""
    transactions = history(
        (4, TransactionState.ONGOING, (PARTITION,)),
        (5, TransactionState.PREPARE_ABORT, (PARTITION,)),
        (6, TransactionState.PREPARE_COMMIT, (PARTITION,)),
    )
    assert transactions.outcome(PARTITION, 7, 4) == (TransactionOutcome.ABORT, 5)


@pytest.mark.parametrize(
    "transactions",
    [
        history((0, TransactionState.ONGOING, (PARTITION,))),
        history((0, TransactionState.PREPARE_COMMIT, (OTHER,)), (2, TransactionState.PREPARE_COMMIT, (PARTITION,))),
        history((0, TransactionState.PREPARE_COMMIT, (PARTITION,)), producer_id=8),
    ],
)
def test_a_forgotten_decision_is_not_guessed(transactions):
    """Nothing decided, another partition, another producer: no outcome."""
    assert transactions.outcome(PARTITION, 7, 0) is None


@pytest.mark.parametrize(
    ("last", "partitions", "active"),
    [
        (TransactionState.ONGOING, (PARTITION,), True),
        (TransactionState.PREPARE_COMMIT, (PARTITION,), True),
        (TransactionState.PREPARE_ABORT, (PARTITION,), True),
        (TransactionState.ONGOING, (OTHER,), False),
        (TransactionState.COMPLETE_COMMIT, (), False),
        (TransactionState.EMPTY, (), False),
        (TransactionState.DEAD, (), False),
    ],
)
def test_a_transaction_is_active_on_the_partitions_of_its_last_record(last, partitions, active):
    """Only the last record counts, and only while it is ongoing or prepared."""
    assert history((0, TransactionState.ONGOING, (PARTITION,)), (0, last, partitions)).is_active(PARTITION) == active
