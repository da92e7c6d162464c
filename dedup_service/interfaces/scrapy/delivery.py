"""Sends messages to the broker, each until it is acknowledged: between the event loop and the Kafka client.

The client (`runtime.kafka.client.async_producer`) has its own threads, retries indefinitely, and returns
futures; here they are awaited.
Invariant: `send` returns when the broker has acknowledged the message, or raises. After `end`, nothing waits.
"""

import asyncio
import logging
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.interfaces.scrapy.settings import BOOTSTRAP, BUFFER_PAGES

if TYPE_CHECKING:
    from dedup_service.interfaces.scrapy.settings import KafkaSettings
    from dedup_service.runtime.kafka.client.async_producer import AsyncProducer
    from dedup_service.runtime.kafka.client.producers import Message

logger = logging.getLogger(__name__)


class UnpublishedError(Exception):
    """A page will not be published.

    reason: label of the stat that counts it: `too_large`, `refused`, `broker_away` or `bug`.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def require_client() -> None:
    """Raise ConfigurationError if the Kafka client is not installed."""
    try:
        import dedup_service.runtime.kafka.client.async_producer  # noqa: F401
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "kafka":
            raise
        raise ConfigurationError(
            f"{BOOTSTRAP} needs the Kafka client: pip install 'twinsieve[scrapy,kafka]', or remove the setting"
        ) from None


class Delivery:
    """Sends the messages of one crawl. ended: why nothing more is sent, None while messages are."""

    def __init__(self, settings: "KafkaSettings") -> None:
        self._settings = settings
        self._producer: AsyncProducer | None = None
        self._unacknowledged: set[asyncio.Future[None]] = set()
        self.ended: UnpublishedError | None = None

    @property
    def retried(self) -> int:
        """Number of times that a message was sent again."""
        return 0 if self._producer is None else self._producer.retried

    def connect(self, topic: str) -> None:
        """Connect to the brokers, which may take seconds; raise if a setting or the topic is wrong."""
        from dedup_service.runtime.kafka.client.async_producer import AsyncProducer

        bounds = {"max_messages": BUFFER_PAGES, "max_bytes": self._settings.buffer_bytes}
        producer = AsyncProducer(self._settings.connection, **bounds)
        try:
            producer.check_topic(topic)
        except TwinsieveError:
            producer.close(0.0)
            raise
        self._producer = producer

    async def send(self, message: "Message") -> None:
        """Send a message and wait until it is acknowledged.

        UnpublishedError if this message never will be; TwinsieveError if the brokers would refuse any other
        as well.
        """
        from dedup_service.runtime.kafka.client.errors import RecordTooLargeError

        try:
            await self._acknowledged(message)
        except RecordTooLargeError as error:
            raise UnpublishedError("too_large", str(error)) from error
        except (TwinsieveError, UnpublishedError):
            raise
        except Exception as error:  # concerns this message only; what concerns all of them is a TwinsieveError
            logger.exception("A page could not be sent; please report this as a bug")
            raise UnpublishedError("bug", repr(error)) from error

    def end(self, reason: UnpublishedError) -> None:
        """Send nothing more; `send` raises `reason` for all messages that wait."""
        self.ended = reason
        for acknowledged in self._unacknowledged:
            if not acknowledged.done():
                acknowledged.set_exception(reason)

    async def close(self) -> None:
        """Close the client. Unless `end` was called, it first sends what it still has."""
        if self._producer is not None:
            await asyncio.to_thread(self._producer.close, 0.0 if self.ended else self._settings.close_timeout_s)

    async def _acknowledged(self, message: "Message") -> None:
        """Pass the message to the client and wait; raise its error, or `ended` if that comes first."""
        assert self._producer is not None
        if self.ended is not None:
            raise self.ended
        loop = asyncio.get_running_loop()
        acknowledged: asyncio.Future[None] = loop.create_future()
        self._unacknowledged.add(acknowledged)

        def settle(sent: Future[Any]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nothing waits any more
                loop.call_soon_threadsafe(_copy_result, sent, acknowledged)

        try:
            self._producer.submit(message).add_done_callback(settle)
            await acknowledged
        finally:
            self._unacknowledged.discard(acknowledged)


def _copy_result(sent: Future[Any], acknowledged: "asyncio.Future[None]") -> None:
    if acknowledged.done():
        return
    error = sent.exception()
    if error is None:
        acknowledged.set_result(None)
    else:
        acknowledged.set_exception(error)
