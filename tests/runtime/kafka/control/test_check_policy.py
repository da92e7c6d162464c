"""Whether a service that was started with bounds of expiry may follow the policy of the log."""

from dataclasses import replace

import pytest

from dedup_service.core.log_records import Policy
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.control.operator_records import PolicyDiffersError, RequestedPolicy, check_policy

ASKED, LOWER = Keep.parse("90d,1000"), Keep.parse("90d,700")
BY_A_PERSON = Policy(rule_for(), Action.FLAG, "space", keep=LOWER)
BY_MEMORY = replace(BY_A_PERSON, lowered=ASKED)


def test_bounds_that_a_limit_on_memory_lowered_are_accepted() -> None:
    """The same command line goes on with what the limit made of its bounds."""
    check_policy(BY_MEMORY, RequestedPolicy("space", keep=ASKED, may_be_lower=True))


@pytest.mark.parametrize(
    ("in_force", "asked", "has_limit"),
    [
        (BY_A_PERSON, ASKED, True),
        (BY_A_PERSON, KEEP_ALL, True),
        (BY_MEMORY, ASKED, False),
        (BY_MEMORY, Keep.parse("90d,2000"), True),
        (BY_MEMORY, Keep.parse("1d,1000"), True),
    ],
    ids=["lowered by a person", "no bounds asked for", "no limit here", "more pages than before", "another age"],
)
def test_other_bounds_than_those_of_the_log_are_refused(in_force: Policy, asked: Keep, has_limit: bool) -> None:
    """Bounds that are asked for are never ignored: a person's lower ones, and those that no limit lowered."""
    with pytest.raises(PolicyDiffersError, match="policy set"):
        check_policy(in_force, RequestedPolicy("space", keep=asked, may_be_lower=has_limit))
