"""The `NEARDUP_KAFKA_*` settings: whether, where and within which bounds a crawl publishes its pages.

`NEARDUP_KAFKA_BOOTSTRAP` alone switches publishing on and the in-process decision off: the service decides then.
Invariant: a setting of one of the two ways beside the other is an error, not a setting without effect.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dedup_service.core.errors import ConfigurationError
from dedup_service.faces.scrapy.setting_values import pairs, seconds, whole
from dedup_service.runtime.kafka.client.settings import Connection

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

__all__ = ["BOOTSTRAP", "KAFKA_NAMES", "KafkaSettings", "kafka_settings"]

BOOTSTRAP = "NEARDUP_KAFKA_BOOTSTRAP"
KAFKA_NAMES = frozenset(
    f"NEARDUP_KAFKA_{name}"
    for name in ("BOOTSTRAP", "PREFIX", "CLIENT", "BUFFER_BYTES", "BUFFER_PAGES", "CLOSE_TIMEOUT_S")
)

DECIDED_BY_THE_SERVICE = (
    "NEARDUP_ACTION", "NEARDUP_ITEMS", "NEARDUP_STATE", "NEARDUP_SCHEME", "NEARDUP_FACTORS", "NEARDUP_SEGMENTER",
    "NEARDUP_USER_WORDS", "NEARDUP_IDF", "NEARDUP_PROFILE", "NEARDUP_CHANNELS", "NEARDUP_K", "NEARDUP_SHARDS",
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
        connection=Connection(addresses, pairs(settings, "NEARDUP_KAFKA_CLIENT")),
        prefix=str(settings.get("NEARDUP_KAFKA_PREFIX") or ""),
        buffer_bytes=whole(settings, "NEARDUP_KAFKA_BUFFER_BYTES", BUFFER_BYTES),
        buffer_pages=whole(settings, "NEARDUP_KAFKA_BUFFER_PAGES", BUFFER_PAGES),
        close_timeout_s=seconds(settings, "NEARDUP_KAFKA_CLOSE_TIMEOUT_S", CLOSE_TIMEOUT_S),
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
