"""The `NEARDUP_*` settings of a Scrapy project, read once and checked before the first request.

Invariant: a setting that cannot be understood stops the crawl at its start; none is ignored in silence.
Every name, default and meaning is in docs/scrapy.md.
"""

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy.utils.job import job_dir

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.profiles import rule_for
from dedup_service.core.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.faces.scrapy.kafka_settings import KAFKA_NAMES, KafkaSettings, kafka_settings
from dedup_service.faces.scrapy.setting_values import choice, flag, seconds, whole
from dedup_service.runtime.resources import SpaceOptions, profile_named

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

__all__ = ["ItemPolicy", "NearDuplicateSettings"]

PREFIX = "NEARDUP_"
TIMEOUT_S = 30.0
"""The slowest of 987 real pages took 2.4 s to extract, so half a minute means that something is wrong."""


class ItemPolicy(StrEnum):
    """What happens to the items of a `duplicate` page."""

    DROP = "drop"
    ANNOTATE = "annotate"


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicateSettings:
    """What the middlewares need to know.

    state: folder of the journal, or None to remember pages for the length of one crawl only.
    rule: what makes a match, or None for the state's own (in a new state, the default).
    processes, concurrency: worker processes, and pages handed to them at a time (waiting ones included).
    timeout_s: how long a worker may take over a page. keep_page: leave the extracted page in `request.meta`.
    kafka: where to publish pages, whose verdicts are then a service's; None to decide in this process.
    dashboard: where to show what is found, None nowhere; dashboard_token: what opens it.
    """

    action: Action = Action.FLAG
    items: ItemPolicy = ItemPolicy.DROP
    state: Path | None = None
    space: SpaceOptions = field(default_factory=SpaceOptions)
    rule: MatchRule | None = None
    shards: int = 1
    processes: int = 1
    concurrency: int = 2
    timeout_s: float = TIMEOUT_S
    keep_page: bool = False
    kafka: KafkaSettings | None = None
    dashboard: str | None = None
    dashboard_token: str | None = field(default=None, repr=False)

    @classmethod
    def from_settings(cls, settings: "BaseSettings") -> Self:
        """Read a project's settings; ConfigurationError names the setting, its value and what it may be."""
        _check_names(name for name in settings if str(name).startswith(PREFIX))
        kafka = kafka_settings(settings)  # first: of two ways that exclude each other that is what has to be said
        processes = whole(settings, "NEARDUP_PROCESSES", default_processes())
        return cls(
            action=choice(settings, "NEARDUP_ACTION", Action, Action.FLAG),
            items=choice(settings, "NEARDUP_ITEMS", ItemPolicy, ItemPolicy.DROP),
            state=_state(settings),
            space=SpaceOptions(
                scheme=settings.get("NEARDUP_SCHEME", "twinsieve"),
                factors=tuple(settings.getlist("NEARDUP_FACTORS")),
                segmenter=settings.get("NEARDUP_SEGMENTER", "rjieba"),
                idf=settings.get("NEARDUP_IDF") or None,
                user_words=settings.get("NEARDUP_USER_WORDS") or None,
            ),
            rule=_rule(settings),
            shards=whole(settings, "NEARDUP_SHARDS", 1),
            processes=processes,
            concurrency=whole(settings, "NEARDUP_CONCURRENCY", 2 * processes),
            timeout_s=seconds(settings, "NEARDUP_TIMEOUT_S", TIMEOUT_S),
            keep_page=flag(settings, "NEARDUP_KEEP_PAGE"),
            kafka=kafka,
            dashboard=_dashboard(settings, kafka),
            dashboard_token=settings.get("NEARDUP_DASHBOARD_TOKEN") or None,
        )


NAMES = KAFKA_NAMES | frozenset(
    PREFIX + name
    for name in (
        "ENABLED", "ACTION", "ITEMS", "STATE", "SCHEME", "FACTORS", "SEGMENTER", "IDF", "USER_WORDS", "PROFILE",
        "CHANNELS", "K", "SHARDS", "PROCESSES", "CONCURRENCY", "TIMEOUT_S", "KEEP_PAGE", "DASHBOARD", "DASHBOARD_TOKEN",
    )
)  # fmt: skip


def default_processes() -> int:
    """One worker for each core we may use, at most four: a worker holds about 250 MB of dictionaries."""
    return min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(sorted(NAMES))}"
            raise ConfigurationError(f"there is no setting {name}{hint}")


def _state(settings: "BaseSettings") -> Path | None:
    """`NEARDUP_STATE`, else a folder beside the job's own state, else memory: as Scrapy's URL filter does."""
    state = settings.get("NEARDUP_STATE")
    if state:
        return Path(state)
    job = job_dir(settings)
    return Path(job, "neardup") if job else None


def _dashboard(settings: "BaseSettings", kafka: KafkaSettings | None) -> str | None:
    """`NEARDUP_DASHBOARD`: [HOST:]PORT, or None."""
    where = settings.get("NEARDUP_DASHBOARD")
    if where is None or where == "":
        return None
    if kafka is not None:
        raise ConfigurationError(
            f"NEARDUP_DASHBOARD={where} shows verdicts, and with NEARDUP_KAFKA_BOOTSTRAP a service gives them: "
            "leave it out, and start `twinsieve serve` with --dashboard"
        )
    return str(where)


def _rule(settings: "BaseSettings") -> MatchRule | None:
    """The rule that the project states, or None where it leaves it to the state."""
    channels, k = settings.get("NEARDUP_CHANNELS"), whole(settings, "NEARDUP_K", None, least=0)
    profile = settings.get("NEARDUP_PROFILE")
    if channels is None and k is None and profile is None:
        return None
    return rule_for(channels, k=k, profile=None if profile is None else profile_named(profile))
