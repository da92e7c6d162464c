"""The topics of the service: their names, how each must be kept, and the three things done to them.

`create` makes what is missing, `check` says what is wrong and what to do, `describe` says what is there.
"""

from dedup_service.runtime.kafka.topics.check import (
    TopicDescription,
    TopicProblem,
    check,
    describe,
    problems_of,
    require_log,
)
from dedup_service.runtime.kafka.topics.create import Made, create, remove
from dedup_service.runtime.kafka.topics.plan import Layout, TopicPlan, Topics, plan_for

__all__ = [
    "Layout",
    "Made",
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
    "require_log",
]
