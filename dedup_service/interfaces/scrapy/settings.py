"""The `TWINSIEVE_*` settings of a Scrapy project, read once and checked before the first request.

`SETTINGS` has every name, type, default and meaning, and docs/settings.md is made from it.
`TWINSIEVE_KAFKA_BOOTSTRAP` alone switches publishing on and the decisions in the crawl off: a service decides then.
Values come from Python (`3`, `True`) and from command lines (`"3"`, `"True"`); both mean the same.

Invariants: an invalid value or an unknown name stops the crawl at its start; no setting is ignored silently.
Settings for verdicts in the crawl and settings for publishing exclude each other.
"""

import asyncio
import difflib
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from scrapy.utils.job import job_dir

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action, VerdictKind
from dedup_service.runtime.embedded.folder import CRAWL_FOLDER
from dedup_service.runtime.kafka.client.config import Connection, read_properties
from dedup_service.runtime.memory_limit import parse_size
from dedup_service.runtime.resources import SpaceOptions, profile_named, space_of
from dedup_service.runtime.workers.cores import usable_cores

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

PREFIX = "TWINSIEVE_"
BOOTSTRAP = "TWINSIEVE_KAFKA_BOOTSTRAP"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a project, without PREFIX, as docs/settings.md shows it.

    shapes_verdicts: not beside publishing, since the service decides then.
    """

    name: str
    values: str
    default: str
    meaning: str
    shapes_verdicts: bool = False


SETTINGS = (
    Setting("ENABLED", "bool", "`True`", "`False` switches the add-on off"),
    Setting("ACTION", "`pass`, `flag`, `drop`", '`"flag"`', "for a duplicate's [response](#responses)", True),
    Setting("ITEMS_OF", "verdicts, list or with commas", "all but `duplicate`", "whose [items](#items) go on", True),
    Setting("ITEM_TEXT", "name, or names", "none", '`"body"`: judge [items](scrapy.md#verdicts-on-items)', True),
    Setting("STATE", "folder", "[see below](#state)", "where pages are remembered", True),
    Setting("KEEP_PAGE", "bool", "`False`", "leave the extracted page in [the request](#extracted-page)"),
    Setting("PROFILE", "name or file", "the state's rule", "[profile](profiles.md): `precise`, `words:3`", True),
    Setting("SPACE", "name or file", '`"twinsieve"`', "[scheme](profiles.md#weighting-schemes) or space file", True),
    Setting("IDF", "file", "that of the space", "table made by `twinsieve idf build`", True),
    Setting(
        "KEEP",
        "pages, age",
        "state's, or all",
        '`1000000`, `"90d"`: pages [expire](files.md#expiry); `"90 pages"`',
        True,
    ),
    Setting("BASES", "list, or with commas", "state's, or none", "states to begin with: [bases](bases.md)", True),
    Setting("MAX_MEMORY", "size", "none", '`"8G"`: [limit on memory](files.md#limit-on-memory) (Linux)', True),
    Setting("JOURNAL_DAYS", "days > 0", "all stay", "how long records of pages that were not kept stay", True),
    Setting("DEADLINE_S", "seconds > 0", "none", "a page without verdict then [passes](scrapy.md#late-verdicts)", True),
    Setting("PROCESSES", "int ≥ 1", "usable cores", "worker processes that extract and fingerprint"),
    Setting("DASHBOARD", "`[HOST:]PORT`", "none", "[dashboard](dashboard.md) address; needs the extra `dashboard`"),
    Setting("DASHBOARD_TOKEN", "text", "none", "[token](#dashboard-token) that opens the dashboard"),
    Setting("KAFKA_BOOTSTRAP", "`host:port`, list or with commas", "none", "brokers; switches publishing on"),
    Setting("KAFKA_PREFIX", "text", '`""`', "what topic names begin with, as in `twinsieve serve --prefix`"),
    Setting("KAFKA_PROPERTIES", "file", "none", "[properties](service.md#tls-and-sasl) of a Kafka client: TLS, SASL"),
    Setting("KAFKA_BUFFER_BYTES", "int ≥ 1", "32 MiB", "limit on unacknowledged pages; a larger page goes alone"),
    Setting("KAFKA_CLOSE_TIMEOUT_S", "seconds > 0", "`30`", "how long a closing crawl waits for acknowledgements"),
)
NAMES = frozenset(PREFIX + setting.name for setting in SETTINGS)
DECIDED_BY_THE_SERVICE = tuple(PREFIX + setting.name for setting in SETTINGS if setting.shapes_verdicts)

ITEMS_OF = frozenset(VerdictKind) - {VerdictKind.DUPLICATE}
"""When in doubt, keep: a store may have failed after the first visit of a page (docs/adr/0009)."""

NOT_UNDECIDED = f"-{VerdictKind.UNDECIDED}"
"""Among verdicts: drop the items of a page that cannot be judged, too."""

BUFFER_BYTES = 32 * 2**20
"""About 5,000 pages of text, or 500 of HTML: at 5 MB/s to a broker, six seconds of work."""

FEW_PAGES = 1000
"""A number of pages to keep below this is more likely one of days: it needs a unit."""

BUFFER_PAGES = 2_000
"""Limit beside that on bytes, on what waits for a broker or for late verdicts: a small page takes more than its own."""

CLOSE_TIMEOUT_S = 30.0
"""A broker that was killed is back in 2 to 12 s; half a minute also outlasts an election among several."""


@contextmanager
def explained() -> Iterator[None]:
    """Say in one line why a crawl does not start, if a component of it cannot be made.

    Scrapy makes components in a task that nobody awaits, so asyncio would write the error with its traceback. The
    task still fails with the error: `scrapy crawl` ends with exit code 1, and whoever awaits the crawl gets it.
    """
    try:
        yield
    except TwinsieveError as error:
        logger.critical("The crawl does not start: %s", error)
        with suppress(RuntimeError):  # no event loop runs yet: the crawl of a `CrawlerProcess` of Twisted
            task = asyncio.current_task()
            if task is not None:
                task.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise


@contextmanager
def named(name: str, value: object) -> Iterator[None]:
    """Let an error of configuration name the setting that it comes from, and its value."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}={value}: {error}") from error


@dataclass(frozen=True, slots=True)
class ItemFields:
    """Names of an item's fields: of the text that is judged, of its title, and of its address.

    url: None for `url`, and the address of the response if an item has none.
    """

    text: str
    title: str = "title"
    url: str | None = None


ITEM_FIELDS = frozenset(one.name for one in fields(ItemFields))


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """Where pages are published to.

    connection: addresses of the brokers, and client options such as TLS and SASL. prefix: start of all topic
    names. buffer_bytes: limit on what is sent and not acknowledged. close_timeout_s: how long a closing crawl
    waits for acknowledgements.
    """

    connection: Connection
    prefix: str = ""
    buffer_bytes: int = BUFFER_BYTES
    close_timeout_s: float = CLOSE_TIMEOUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicateSettings:
    """What the middlewares and the pipeline need to know.

    items_of: the verdicts whose items go on. item_text: fields of the items to judge, or None to judge pages.
    state: state folder, or None to remember pages until the crawl ends.
    rule: what makes a match, or None for the rule of the state (in a new state, the default).
    keep: bounds of expiry, or None for those of the state (in a new state, all pages are kept).
    max_memory_bytes: limit on the memory of this process, or None.
    processes: worker processes; twice as many pages are handed to them at a time.
    bases: folders or addresses of states with which the state is begun.
    journal_days: days for which records of pages that were not kept stay in the state, or None for all.
    deadline_s: how long a page waits for its verdict before it passes without, or None to wait for every verdict.
    keep_page: leave the extracted page in `request.meta`.
    kafka: where to publish pages for a service to decide, or None to decide in this process.
    dashboard: [HOST:]PORT of the dashboard, or None. dashboard_token: token that opens it.
    """

    action: Action = Action.FLAG
    items_of: frozenset[VerdictKind] = ITEMS_OF
    item_text: ItemFields | None = None
    state: Path | None = None
    space: SpaceOptions = field(default_factory=SpaceOptions)
    rule: MatchRule | None = None
    keep: Keep | None = None
    max_memory_bytes: int | None = None
    journal_days: float | None = None
    bases: tuple[str, ...] = ()
    processes: int = 1
    deadline_s: float | None = None
    keep_page: bool = False
    kafka: KafkaSettings | None = None
    dashboard: str | None = None
    dashboard_token: str | None = field(default=None, repr=False)

    @classmethod
    def from_settings(cls, settings: "BaseSettings") -> Self:
        """Read a project's settings; ConfigurationError names the setting, its value and what is allowed."""
        _check_names(name for name in settings if str(name).startswith(PREFIX))
        kafka = _kafka(settings)  # first: if settings exclude each other, that is the message to show
        return cls(
            action=_choice(settings, "TWINSIEVE_ACTION", Action, Action.FLAG),
            items_of=_items_of(settings),
            item_text=_item_text(settings),
            state=_state(settings),
            space=_space(settings),
            rule=_rule(settings),
            keep=_keep(settings),
            max_memory_bytes=_max_memory(settings),
            journal_days=_journal_days(settings),
            bases=_bases(settings),
            processes=_integer(settings, "TWINSIEVE_PROCESSES", usable_cores()),
            deadline_s=_deadline(settings),
            keep_page=flag(settings, "TWINSIEVE_KEEP_PAGE", default=False),
            kafka=kafka,
            dashboard=_dashboard(settings, kafka),
            dashboard_token=str(settings.get("TWINSIEVE_DASHBOARD_TOKEN") or "") or None,
        )


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if name not in NAMES:
            similar = difflib.get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {similar[0]}?" if similar else f"the settings are {', '.join(sorted(NAMES))}"
            raise ConfigurationError(f"there is no setting {name}; {hint}")


def _items_of(settings: "BaseSettings") -> frozenset[VerdictKind]:
    """Return the verdicts whose items go on, with `undecided` unless that is ruled out."""
    given = settings.get("TWINSIEVE_ITEMS_OF")
    if given is None:
        return ITEMS_OF
    try:
        names = {str(name).strip() for name in (given.split(",") if isinstance(given, str) else given)}
        verdicts = frozenset(map(VerdictKind, names - {NOT_UNDECIDED}))
    except (TypeError, ValueError):
        verdicts = frozenset()
    if not verdicts:
        raise ConfigurationError(
            f"TWINSIEVE_ITEMS_OF must name verdicts of {', '.join(VerdictKind)}, and may have {NOT_UNDECIDED}; got "
            f"{given!r}"
        )
    return verdicts if NOT_UNDECIDED in names else verdicts | {VerdictKind.UNDECIDED}


def _item_text(settings: "BaseSettings") -> ItemFields | None:
    """Return the fields of the items to judge, or None to judge pages."""
    given = settings.get("TWINSIEVE_ITEM_TEXT")
    if given is None or given == "":
        return None
    names = _field_names(settings, given)
    if (
        "text" not in names
        or not names.keys() <= ITEM_FIELDS
        or not all(isinstance(n, str) and n for n in names.values())
    ):
        raise ConfigurationError(
            f"TWINSIEVE_ITEM_TEXT must name a field of items, or be a dict of such names under text, and title and url "
            f"if these are called otherwise; got {given!r}"
        )
    if settings.get("TWINSIEVE_ACTION") is not None:
        raise ConfigurationError(
            f"TWINSIEVE_ITEM_TEXT={given} judges items, but TWINSIEVE_ACTION is for the responses of duplicates: "
            "remove one of the two"
        )
    return ItemFields(**names)


def _field_names(settings: "BaseSettings", given: object) -> dict[str, Any]:
    """Return the names in `TWINSIEVE_ITEM_TEXT`: text alone, or a dict, which a command line gives as JSON."""
    if isinstance(given, str) and not given.lstrip().startswith("{"):
        return {"text": given}
    try:
        return dict(settings.getdict("TWINSIEVE_ITEM_TEXT"))
    except (TypeError, ValueError):
        return {}


def _state(settings: "BaseSettings") -> Path | None:
    """Return `TWINSIEVE_STATE`, else a folder in JOBDIR, else None (memory), as Scrapy's URL filter does."""
    state = _name(settings, "TWINSIEVE_STATE")
    if state:
        return Path(state)
    job = job_dir(settings)
    return Path(job, CRAWL_FOLDER) if job else None


def _name(settings: "BaseSettings", name: str) -> str | None:
    """Return a setting that names something, or a file or folder, as text; None if it is not set."""
    value = settings.get(name)
    if value is not None and not isinstance(value, str | Path):
        raise ConfigurationError(f"{name} must be text, got {value!r}")
    return None if value is None else str(value)


def _space(settings: "BaseSettings") -> SpaceOptions:
    """Return the space that the project chooses, by default that of all defaults."""
    space, idf = (_name(settings, name) or None for name in ("TWINSIEVE_SPACE", "TWINSIEVE_IDF"))
    with named("TWINSIEVE_SPACE", space):
        return space_of(space, idf)


def _bases(settings: "BaseSettings") -> tuple[str, ...]:
    """Return the folders and addresses of bases; blanks around commas are no part of them."""
    bases = settings.get("TWINSIEVE_BASES") or ()
    names = bases.split(",") if isinstance(bases, str) else [bases] if isinstance(bases, Path) else bases
    if not isinstance(names, list | tuple) or not all(isinstance(name, str | Path) for name in names):
        raise ConfigurationError(f"TWINSIEVE_BASES must be a list of folders and addresses, got {bases!r}")
    return tuple(name for name in (str(base).strip() for base in names) if name)


def _rule(settings: "BaseSettings") -> MatchRule | None:
    """Return the rule that the project chooses, or None to leave it to the state."""
    profile = _name(settings, "TWINSIEVE_PROFILE")
    with named("TWINSIEVE_PROFILE", profile):
        return None if profile is None else profile_named(profile)


def _keep(settings: "BaseSettings") -> Keep | None:
    """Return the bounds of expiry that the project chooses, or None to leave them to the state."""
    keep = settings.get("TWINSIEVE_KEEP")
    if keep is None or isinstance(keep, Keep):
        return keep
    text = ",".join(map(str, keep)) if isinstance(keep, list | tuple) else str(keep)
    with named("TWINSIEVE_KEEP", keep):
        bounds = Keep.parse(text)
    if text.strip().isdecimal() and int(text) < FEW_PAGES:
        raise ConfigurationError(
            f'TWINSIEVE_KEEP={keep} is a number of pages: give "{text}d" for days, or "{text} pages"'
        )
    return bounds


def _max_memory(settings: "BaseSettings") -> int | None:
    """Return the limit on memory in bytes, or None without one."""
    size = settings.get("TWINSIEVE_MAX_MEMORY")
    with named("TWINSIEVE_MAX_MEMORY", size):
        return None if size is None else parse_size(str(size))


def _journal_days(settings: "BaseSettings") -> float | None:
    """Return `TWINSIEVE_JOURNAL_DAYS`, or None to keep all records."""
    days = settings.get("TWINSIEVE_JOURNAL_DAYS")
    if days is None:
        return None
    if _state(settings) is None:
        raise ConfigurationError(
            f"TWINSIEVE_JOURNAL_DAYS={days} has no effect without a state folder: set TWINSIEVE_STATE or JOBDIR, or "
            "remove it"
        )
    return _positive(settings, "TWINSIEVE_JOURNAL_DAYS", 0.0, "days")


def _deadline(settings: "BaseSettings") -> float | None:
    """Return `TWINSIEVE_DEADLINE_S`, or None to wait for every verdict."""
    if settings.get("TWINSIEVE_DEADLINE_S") is None:
        return None
    return _seconds(settings, "TWINSIEVE_DEADLINE_S", 0.0)


def _dashboard(settings: "BaseSettings", kafka: KafkaSettings | None) -> str | None:
    """Return `TWINSIEVE_DASHBOARD`: [HOST:]PORT, or None."""
    address = settings.get("TWINSIEVE_DASHBOARD")
    if address is None or address == "":
        return None
    if kafka is not None:
        raise ConfigurationError(
            f"TWINSIEVE_DASHBOARD={address} shows verdicts, but with {BOOTSTRAP} a service gives them: "
            "remove TWINSIEVE_DASHBOARD, and start `twinsieve serve` with --dashboard"
        )
    return str(address)


def _kafka(settings: "BaseSettings") -> KafkaSettings | None:
    """Return how to publish, or None; ConfigurationError if settings exclude each other."""
    bootstrap = settings.get(BOOTSTRAP)
    if not bootstrap:
        _refuse_without_brokers(settings)
        return None
    _refuse_decisions(settings)
    properties = _name(settings, "TWINSIEVE_KAFKA_PROPERTIES")
    addresses = ",".join(map(str, bootstrap)) if isinstance(bootstrap, list | tuple) else str(bootstrap)
    with named(BOOTSTRAP, addresses):
        Connection(addresses)
    with named("TWINSIEVE_KAFKA_PROPERTIES", properties):
        connection = Connection(addresses, read_properties(Path(properties)) if properties else {})
    return KafkaSettings(
        connection=connection,
        prefix=str(settings.get("TWINSIEVE_KAFKA_PREFIX") or ""),
        buffer_bytes=_integer(settings, "TWINSIEVE_KAFKA_BUFFER_BYTES", BUFFER_BYTES),
        close_timeout_s=_seconds(settings, "TWINSIEVE_KAFKA_CLOSE_TIMEOUT_S", CLOSE_TIMEOUT_S),
    )


def _refuse_without_brokers(settings: "BaseSettings") -> None:
    for name in sorted(NAMES - {BOOTSTRAP}):
        if name.startswith(f"{PREFIX}KAFKA_") and settings.get(name) is not None:
            raise ConfigurationError(
                f"{name} has no effect without {BOOTSTRAP}: name the brokers there as host:port, or remove {name}"
            )


def _refuse_decisions(settings: "BaseSettings") -> None:
    for name in DECIDED_BY_THE_SERVICE:
        if settings.get(name) is not None:
            raise ConfigurationError(
                f"{BOOTSTRAP} leaves the verdicts to `twinsieve serve`, but {name} is for verdicts in the crawl: "
                f"remove {name} (the service has separate options), or remove {BOOTSTRAP}"
            )


def _choice(settings: "BaseSettings", name: str, kind: Any, default: Any) -> Any:
    """Return the member of the enumeration `kind` that the setting names."""
    value = settings.get(name, default)
    try:
        return kind(value)
    except ValueError:
        raise ConfigurationError(f"{name} must be one of {', '.join(kind)}, got {value!r}") from None


def _integer(settings: "BaseSettings", name: str, default: Any, minimum: int = 1) -> Any:
    """Return the setting as an integer of at least `minimum`, or `default` if it is not set."""
    value = settings.get(name)
    if value is None:
        return default
    number = int(value) if str(value).strip().isdecimal() else None
    if isinstance(value, bool) or number is None or number < minimum:
        raise ConfigurationError(f"{name} must be an integer of at least {minimum}, got {value!r}")
    return number


def _seconds(settings: "BaseSettings", name: str, default: float) -> float:
    """Return the setting as a number of seconds above 0."""
    return _positive(settings, name, default, "seconds")


def _positive(settings: "BaseSettings", name: str, default: float, unit: str) -> float:
    """Return the setting as a number above 0."""
    value = settings.get(name, default)
    try:
        number = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < float("inf"):
        raise ConfigurationError(f"{name} must be a number of {unit} above 0, got {value!r}")
    return number


def flag(settings: "BaseSettings", name: str, *, default: bool) -> bool:
    """Return the setting as True or False, `default` if it is not set; ConfigurationError for any other value."""
    try:
        return bool(settings.getbool(name, default))
    except (TypeError, ValueError):
        raise ConfigurationError(f"{name} must be True or False, got {settings.get(name)!r}") from None
