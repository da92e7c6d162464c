"""Read one setting as what it has to be, and say what it may be where it is not.

Values come from Python (`3`, `True`) and from command lines (`"3"`, `"True"`); both are read alike.

The `TWINSIEVE_KAFKA_*` settings: whether, where and within which bounds a crawl publishes its pages.

`TWINSIEVE_KAFKA_BOOTSTRAP` alone switches publishing on and the in-process decision off: the service decides then.
Invariant: a setting of one of the two ways beside the other is an error, not a setting without effect.

The `TWINSIEVE_*` settings of a Scrapy project, read once and checked before the first request.

Invariant: a setting that cannot be understood stops the crawl at its start; none is ignored in silence.
Every name, default and meaning is in docs/scrapy.md.
"""

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from scrapy.utils.job import job_dir

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.resources import SpaceOptions, profile_named

__all__ = [
    "BOOTSTRAP",
    "KAFKA_NAMES",
    "ItemPolicy",
    "KafkaSettings",
    "NearDuplicateSettings",
    "choice",
    "flag",
    "kafka_settings",
    "pairs",
    "seconds",
    "whole",
]

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def choice(settings: "BaseSettings", name: str, kind: Any, default: Any) -> Any:
    """Return the member of the enumeration `kind` that the setting names."""
    value = settings.get(name, default)
    try:
        return kind(value)
    except ValueError:
        raise ConfigurationError(f"{name} is one of {', '.join(kind)}, got {value!r}") from None


def whole(settings: "BaseSettings", name: str, default: Any, minimum: int = 1) -> Any:
    """Return the setting as a whole number of at least `minimum`; `default` as it is where there is none."""
    value = settings.get(name)
    if value is None:
        return default
    number = int(value) if str(value).strip().isdecimal() else None
    if isinstance(value, bool) or number is None or number < minimum:
        raise ConfigurationError(f"{name} is a whole number from {minimum}, got {value!r}")
    return number


def seconds(settings: "BaseSettings", name: str, default: float) -> float:
    """Return the setting as a number of seconds above 0."""
    value = settings.get(name, default)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < float("inf"):
        raise ConfigurationError(f"{name} is a number of seconds above 0, got {value!r}")
    return number


def flag(settings: "BaseSettings", name: str) -> bool:
    """Return the setting as True or False; False where there is none."""
    try:
        return bool(settings.getbool(name, False))
    except ValueError:
        raise ConfigurationError(f"{name} is True or False, got {settings.get(name)!r}") from None


def pairs(settings: "BaseSettings", name: str) -> dict[str, str]:
    """Return a setting of names and values: a dict, a list of `name=value`, or JSON of either on a command line.

    The message of an error names no value: one of them may be a password.
    """
    try:
        value = settings.getdictorlist(name)
    except ValueError:
        raise ConfigurationError(f"{name} is a dict, or a list of name=value, and is neither here") from None
    if isinstance(value, Mapping):
        return {str(key): str(entry) for key, entry in value.items()}
    split = [str(entry).partition("=") for entry in value]
    wrong = [key for key, equals, _ in split if not equals or not key.strip()]
    if wrong:
        raise ConfigurationError(f"{name} lists name=value, one entry has no name or no value ({len(split)} entries)")
    return {key.strip(): entry for key, _, entry in split}


BOOTSTRAP = "TWINSIEVE_KAFKA_BOOTSTRAP"
KAFKA_NAMES = frozenset(
    f"TWINSIEVE_KAFKA_{name}"
    for name in ("BOOTSTRAP", "PREFIX", "CLIENT", "BUFFER_BYTES", "BUFFER_PAGES", "CLOSE_TIMEOUT_S")
)

DECIDED_BY_THE_SERVICE = (
    "TWINSIEVE_ACTION", "TWINSIEVE_ITEMS", "TWINSIEVE_STATE", "TWINSIEVE_SCHEME", "TWINSIEVE_FACTORS",
    "TWINSIEVE_SEGMENTER", "TWINSIEVE_USER_WORDS", "TWINSIEVE_IDF", "TWINSIEVE_PROFILE", "TWINSIEVE_CHANNELS",
    "TWINSIEVE_K", "TWINSIEVE_SHARDS",
)  # fmt: skip

BUFFER_BYTES = 32 * 2**20
"""About 5,000 pages of text, or 500 of HTML: at 5 MB/s to a broker, six seconds of work."""

BUFFER_PAGES = 2_000
CLOSE_TIMEOUT_S = 30.0
"""A broker that was killed is back in 2 to 12 s; half a minute also outlasts an election among several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """Where pages are published to.

    connection: the brokers' addresses, and options of the client such as TLS and SASL. prefix: of the topics' names.
    buffer_bytes, buffer_pages: bounds of what is on its way and not acknowledged. close_timeout_s: how long a crawl
    that is being closed waits for acknowledgements.
    """

    connection: Connection
    prefix: str = ""
    buffer_bytes: int = BUFFER_BYTES
    buffer_pages: int = BUFFER_PAGES
    close_timeout_s: float = CLOSE_TIMEOUT_S


def kafka_settings(settings: "BaseSettings") -> KafkaSettings | None:
    """Return how to publish, or None where a project does not; ConfigurationError where settings contradict."""
    bootstrap = settings.get(BOOTSTRAP)
    if not bootstrap:
        _refuse_alone(settings)
        return None
    _refuse_decisions(settings)
    addresses = ",".join(map(str, bootstrap)) if isinstance(bootstrap, list | tuple) else str(bootstrap)
    return KafkaSettings(
        connection=Connection(addresses, pairs(settings, "TWINSIEVE_KAFKA_CLIENT")),
        prefix=str(settings.get("TWINSIEVE_KAFKA_PREFIX") or ""),
        buffer_bytes=whole(settings, "TWINSIEVE_KAFKA_BUFFER_BYTES", BUFFER_BYTES),
        buffer_pages=whole(settings, "TWINSIEVE_KAFKA_BUFFER_PAGES", BUFFER_PAGES),
        close_timeout_s=seconds(settings, "TWINSIEVE_KAFKA_CLOSE_TIMEOUT_S", CLOSE_TIMEOUT_S),
    )


def _refuse_alone(settings: "BaseSettings") -> None:
    for name in sorted(KAFKA_NAMES - {BOOTSTRAP}):
        if settings.get(name) is not None:
            raise ConfigurationError(f"{name} means nothing without {BOOTSTRAP}: name the brokers there as host:port")


def _refuse_decisions(settings: "BaseSettings") -> None:
    for name in DECIDED_BY_THE_SERVICE:
        if settings.get(name) is not None:
            raise ConfigurationError(
                f"{BOOTSTRAP} leaves the verdicts to `twinsieve serve`, {name} is for verdicts in this process: "
                f"remove {name} (the service has options of its own), or remove {BOOTSTRAP}"
            )


PREFIX = "TWINSIEVE_"
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
        processes = whole(settings, "TWINSIEVE_PROCESSES", default_processes())
        return cls(
            action=choice(settings, "TWINSIEVE_ACTION", Action, Action.FLAG),
            items=choice(settings, "TWINSIEVE_ITEMS", ItemPolicy, ItemPolicy.DROP),
            state=_state(settings),
            space=SpaceOptions(
                scheme=settings.get("TWINSIEVE_SCHEME", "twinsieve"),
                factors=tuple(settings.getlist("TWINSIEVE_FACTORS")),
                segmenter=settings.get("TWINSIEVE_SEGMENTER", "rjieba"),
                idf=settings.get("TWINSIEVE_IDF") or None,
                user_words=settings.get("TWINSIEVE_USER_WORDS") or None,
            ),
            rule=_rule(settings),
            shards=whole(settings, "TWINSIEVE_SHARDS", 1),
            processes=processes,
            concurrency=whole(settings, "TWINSIEVE_CONCURRENCY", 2 * processes),
            timeout_s=seconds(settings, "TWINSIEVE_TIMEOUT_S", TIMEOUT_S),
            keep_page=flag(settings, "TWINSIEVE_KEEP_PAGE"),
            kafka=kafka,
            dashboard=_dashboard(settings, kafka),
            dashboard_token=settings.get("TWINSIEVE_DASHBOARD_TOKEN") or None,
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
    """`TWINSIEVE_STATE`, else a folder beside the job's own state, else memory: as Scrapy's URL filter does."""
    state = settings.get("TWINSIEVE_STATE")
    if state:
        return Path(state)
    job = job_dir(settings)
    return Path(job, "twinsieve") if job else None


def _dashboard(settings: "BaseSettings", kafka: KafkaSettings | None) -> str | None:
    """`TWINSIEVE_DASHBOARD`: [HOST:]PORT, or None."""
    where = settings.get("TWINSIEVE_DASHBOARD")
    if where is None or where == "":
        return None
    if kafka is not None:
        raise ConfigurationError(
            f"TWINSIEVE_DASHBOARD={where} shows verdicts, and with TWINSIEVE_KAFKA_BOOTSTRAP a service gives them: "
            "leave it out, and start `twinsieve serve` with --dashboard"
        )
    return str(where)


def _rule(settings: "BaseSettings") -> MatchRule | None:
    """The rule that the project states, or None where it leaves it to the state."""
    channels, k = settings.get("TWINSIEVE_CHANNELS"), whole(settings, "TWINSIEVE_K", None, minimum=0)
    profile = settings.get("TWINSIEVE_PROFILE")
    if channels is None and k is None and profile is None:
        return None
    return rule_for(channels, k=k, profile=None if profile is None else profile_named(profile))
