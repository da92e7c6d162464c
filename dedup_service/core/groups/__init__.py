"""Groups: each kept page with its copies, and which of them stands for the group."""

from dedup_service.core.groups.canonical import CanonicalPolicy, canonical_policy, is_known_policy, policy_of_log
from dedup_service.core.groups.grouping import PageGroup, group_of, grouped
from dedup_service.core.groups.member import GroupMember, Removal

__all__ = [
    "CanonicalPolicy",
    "GroupMember",
    "PageGroup",
    "Removal",
    "canonical_policy",
    "group_of",
    "grouped",
    "is_known_policy",
    "policy_of_log",
]
