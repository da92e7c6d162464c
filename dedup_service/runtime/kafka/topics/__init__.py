"""The topics of the service: their names, how each must be kept, and what is done with them.

`create` makes what is missing, `check` says what is wrong and what to do, `describe` returns what exists.
"""

from dedup_service.runtime.kafka.client.admin import TopicDescription, TopicPlan
from dedup_service.runtime.kafka.topics.check import (
    TopicProblem,
    check,
    describe,
    problems_of,
    require_canonical,
    require_log,
    require_shards,
)
from dedup_service.runtime.kafka.topics.create import TopicCreation, create, remove
from dedup_service.runtime.kafka.topics.plan import Layout, OutputMode, Topics, plan_for

__all__ = [
    "Layout",
    "OutputMode",
    "TopicCreation",
    "TopicDescription",
    "TopicPlan",
    "TopicProblem",
    "Topics",
    "check",
    "create",
    "describe",
    "plan_for",
    "problems_of",
    "remove",
    "require_canonical",
    "require_log",
    "require_shards",
]
