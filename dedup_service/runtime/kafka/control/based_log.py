"""Begins the log of a service with bases, before any process does (`policy set --base`).

The first policy of a log names its bases, and no later one does. A process that only makes fingerprints has no bases,
and would begin the log without them.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.control.operator_records import (
    PolicyInForce,
    RequestedPolicy,
    binding_of,
    first_policy,
    policy_in_force,
)
from dedup_service.runtime.kafka.state.mounted_bases import offered_bases
from dedup_service.runtime.kafka.topics import OutputMode, Topics


def begin_with_bases(
    connection: Connection,
    topics: Topics,
    group: str,
    given: Mapping[str, str],
    folder: Path,
    rule: MatchRule | None = None,
    action: Action | None = None,
    keep: Keep | None = None,
) -> PolicyInForce:
    """Let an empty log begin with bases, before any service does; return the policy in force then.

    group: of the service, with its prefix. given: folder or address of each base, by name. folder: for scratch files.
    rule, keep: None takes those of the first base. ConfigurationError if the log has begun otherwise; raises as
    `first_policy` and `offered_bases`.
    """
    offer = offered_bases(given, folder)
    requested = RequestedPolicy(offer.space_id, rule, action, keep, bases=lambda: offer)
    with closing(LogConsumer(connection, topics.fingerprints)) as log:
        binding = binding_of(connection, topics, group, OutputMode.VERDICTS)
        first = first_policy(connection, topics, log, requested, binding)
        asked = requested.first_policy(None)
        if replace(first.policy, action=asked.action if action is None else first.policy.action) != asked:
            names = ", ".join(base.name for base in first.policy.bases)
            begun = f"with the bases {names}" if names else "without bases"
            raise ConfigurationError(
                f"{topics.fingerprints} was begun {begun} and by {first.policy.rule}; bases are given to an empty log "
                "alone. Leave --base out, or begin another log with --prefix"
            )
    return policy_in_force(connection, topics)
