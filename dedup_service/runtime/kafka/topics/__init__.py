"""The topics of the service: their names, how each must be kept, and the three things done to them.

`create` makes what is missing, `check` says what is wrong and what to do, `describe` says what is there.
"""

from dedup_service.runtime.kafka.topics.checking import Problem, check, problems_of, require_log
from dedup_service.runtime.kafka.topics.describing import TopicFact, describe
from dedup_service.runtime.kafka.topics.making import Made, create, remove
from dedup_service.runtime.kafka.topics.names import Topics
from dedup_service.runtime.kafka.topics.plan import Layout, TopicPlan, plan_for

__all__ = [
    "Layout",
    "Made",
    "Problem",
    "TopicFact",
    "TopicPlan",
    "Topics",
    "check",
    "create",
    "describe",
    "plan_for",
    "problems_of",
    "remove",
    "require_log",
]
