"""What a coordinator's notes say of a transaction that is open on a partition."""

import pytest

from dedup_service.runtime.kafka.control.hanging_transactions import (
    History,
    TransactionOutcome,
    TransactionRecord,
    TransactionState,
)

PLACE = ("verdicts", 5)
OTHER = ("verdicts", 2)


def history(*steps: tuple[int, TransactionState, tuple[tuple[str, int], ...]], producer_id: int = 7) -> History:
    first, *rest = [
        TransactionRecord("t", producer_id, epoch, phase, frozenset(places)) for epoch, phase, places in steps
    ]
    made = History(first)
    for state in rest:
        made.note(state)
    return made


def test_the_last_decision_on_the_partition_counts():
    """A later transaction that did not touch the partition says nothing about it."""
    told = history(
        (0, TransactionState.ONGOING, (PLACE,)),
        (0, TransactionState.PREPARE_ABORT, (PLACE,)),
        (0, TransactionState.COMPLETE_ABORT, ()),
        (0, TransactionState.PREPARE_COMMIT, (PLACE, OTHER)),
        (0, TransactionState.COMPLETE_COMMIT, ()),
        (0, TransactionState.PREPARE_ABORT, (OTHER,)),
    )
    assert told.outcome(PLACE, 7, 0) == (TransactionOutcome.COMMIT, 0)
    assert told.outcome(OTHER, 7, 0) == (TransactionOutcome.ABORT, 0)
    assert told.topics == {"verdicts"}


def test_a_decision_may_raise_the_epoch():
    """Where a coordinator ends what a former self left, the marker has the raised epoch, not a later one."""
    told = history(
        (4, TransactionState.ONGOING, (PLACE,)),
        (5, TransactionState.PREPARE_ABORT, (PLACE,)),
        (6, TransactionState.PREPARE_COMMIT, (PLACE,)),
    )
    assert told.outcome(PLACE, 7, 4) == (TransactionOutcome.ABORT, 5)


@pytest.mark.parametrize(
    "told",
    [
        history((0, TransactionState.ONGOING, (PLACE,))),
        history((0, TransactionState.PREPARE_COMMIT, (OTHER,)), (2, TransactionState.PREPARE_COMMIT, (PLACE,))),
        history((0, TransactionState.PREPARE_COMMIT, (PLACE,)), producer_id=8),
    ],
)
def test_a_forgotten_decision_is_not_guessed(told):
    """Nothing decided, another partition, another producer: no outcome."""
    assert told.outcome(PLACE, 7, 0) is None


@pytest.mark.parametrize(
    ("last", "places", "at_work"),
    [
        (TransactionState.ONGOING, (PLACE,), True),
        (TransactionState.PREPARE_COMMIT, (PLACE,), True),
        (TransactionState.PREPARE_ABORT, (PLACE,), True),
        (TransactionState.ONGOING, (OTHER,), False),
        (TransactionState.COMPLETE_COMMIT, (), False),
        (TransactionState.EMPTY, (), False),
        (TransactionState.DEAD, (), False),
    ],
)
def test_a_coordinator_is_at_work_on_the_partitions_it_lists(last, places, at_work):
    """Its last note counts."""
    assert history((0, TransactionState.ONGOING, (PLACE,)), (0, last, places)).is_at_work(PLACE) == at_work
