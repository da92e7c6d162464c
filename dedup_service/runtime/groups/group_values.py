"""A group as plain values, which are one line of JSON, one row of Parquet and what the dashboard shows."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from dedup_service.core.groups.canonical import CanonicalPolicy
from dedup_service.core.groups.grouping import PageGroup
from dedup_service.core.groups.member import GroupMember, Removal

ERASED = "[erased]"
"""Stands for the names of a page that was retracted."""

_encode = msgspec.json.Encoder().encode


def group_values(group: PageGroup, policy: CanonicalPolicy) -> dict[str, Any]:
    """Return a group as plain values, in the order of the keys of its line."""
    canonical = group.canonical
    return {
        "group": group.sequence,
        "size": group.size,
        "records": group.records,
        "policy": policy.text,
        "canonical": None if canonical is None else _names(canonical),
        "follows": group.follows,
        "members": [_member(member) for member in group.members],
        "omitted": group.omitted,
    }


def canonical_value(group: int, member: GroupMember, policy: str, at_ms: int) -> bytes:
    """Return which page stands for a group, as JSON. at_ms: since when, Unix milliseconds."""
    return _encode({"group": group, "canonical": _names(member), "policy": policy, "at": _time(at_ms)})


def _names(member: GroupMember) -> dict[str, Any]:
    erased = member.removed is Removal.RETRACTION
    return {
        "id": ERASED if erased else _text(member.id),
        "url": ERASED if erased else _text(member.url),
        "sequence": member.sequence,
    }


def _member(member: GroupMember) -> dict[str, Any]:
    source, erased = member.source, member.removed is Removal.RETRACTION
    return {
        **_names(member),
        "title": "" if erased else _text(member.title),
        "date": None if erased else member.date,
        "verdict": member.kind.value,
        "distance": {"words": member.distance.words, "body": member.distance.body},
        "score": member.score,
        "reason": None if member.reason is None else _text(member.reason),
        "letters": member.letters,
        "text_percent": member.text_percent,
        "host_sentences": member.host_sentences,
        "at": _time(member.logged_ms),
        "source": None
        if source is None
        else {"topic": source.topic, "partition": source.partition, "offset": source.offset},
        "removed": None if member.removed is None else member.removed.value,
    }


def _text(text: str) -> str:
    """Return a text as UTF-8 can have it: a lone surrogate, which a caller may have given, is replaced."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _time(logged_ms: int | None) -> str | None:
    """Return a time in ISO 8601; None for one that Kafka leaves out (-1) or that no calendar has."""
    if logged_ms is None or logged_ms < 0:
        return None
    try:
        return datetime.fromtimestamp(logged_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None
