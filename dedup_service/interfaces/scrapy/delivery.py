"""One message after another to the broker, each until it is acknowledged: between the event loop and the client.

The client (`runtime.kafka.publisher`) has threads of its own, tries again for as long as it takes, and answers with
futures; here they are awaited.
Invariant: `send` returns when the broker has acknowledged the message, or raises; once `end` was called nobody waits.
"""

import asyncio
import logging
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.interfaces.scrapy.settings import BOOTSTRAP

if TYPE_CHECKING:
    from dedup_service.interfaces.scrapy.settings import KafkaSettings
    from dedup_service.runtime.kafka.client.async_producer import AsyncProducer
    from dedup_service.runtime.kafka.client.producers import Message

__all__ = ["Delivery", "UnpublishedError", "need_client"]

logger = logging.getLogger(__name__)


class UnpublishedError(Exception):
    """A page will not be published. reason: a name to count by: `too_large`, `refused`, `broker_away`, `bug`."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def need_client() -> None:
    """ConfigurationError where the client library is not installed."""
    try:
        import dedup_service.runtime.kafka.client.async_producer  # noqa: F401
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "kafka":
            raise
        raise ConfigurationError(
            f"{BOOTSTRAP} needs the Kafka client: pip install 'twinsieve[scrapy,kafka]', or remove the setting"
        ) from None


class Delivery:
    """Sends the messages of one crawl."""

    def __init__(self, settings: "KafkaSettings") -> None:
        self._settings = settings
        self._producer: AsyncProducer | None = None
        self._waiting: set[asyncio.Future[None]] = set()
        self.ended: UnpublishedError | None = None

    @property
    def retried(self) -> int:
        """How many times a message was sent again."""
        return 0 if self._producer is None else self._producer.retried

    def connect(self, topic: str) -> None:
        """Reach the brokers, which may take seconds; what is wrong with address, TLS, password or topic is raised."""
        from dedup_service.runtime.kafka.client.async_producer import AsyncProducer

        _quiet_client()
        bounds = {"max_messages": self._settings.buffer_pages, "max_bytes": self._settings.buffer_bytes}
        producer = AsyncProducer(self._settings.connection, **bounds)
        try:
            producer.check_topic(topic)
        except TwinsieveError:
            producer.close(0.0)
            raise
        self._producer = producer

    async def send(self, message: "Message") -> None:
        """Send, and wait until it is acknowledged.

        UnpublishedError where it never will be; TwinsieveError where the brokers would refuse any other as well.
        """
        from dedup_service.runtime.kafka.client.errors import RecordTooLargeError

        try:
            await self._acknowledged(message)
        except RecordTooLargeError as error:
            raise UnpublishedError("too_large", str(error)) from error
        except (TwinsieveError, UnpublishedError):
            raise
        except Exception as error:  # of one message; what would fail for all of them is a TwinsieveError
            logger.exception("a page could not be sent")
            raise UnpublishedError("bug", repr(error)) from error

    def end(self, reason: UnpublishedError) -> None:
        """Send nothing more: everybody who waits gets `reason`."""
        self.ended = reason
        for outcome in self._waiting:
            if not outcome.done():
                outcome.set_exception(reason)

    async def close(self) -> None:
        """Close the client, which waits for what it has, unless `end` was called."""
        if self._producer is not None:
            await asyncio.to_thread(self._producer.close, 0.0 if self.ended else self._settings.close_timeout_s)

    async def _acknowledged(self, message: "Message") -> None:
        """Hand the message to the client and wait; what the client raises, or how delivery ended meanwhile."""
        assert self._producer is not None
        if self.ended is not None:
            raise self.ended
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[None] = loop.create_future()
        self._waiting.add(outcome)

        def settle(sent: Future[Any]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, sent, outcome)

        try:
            self._producer.submit(message).add_done_callback(settle)
            await outcome
        finally:
            self._waiting.discard(outcome)


def _settle(sent: Future[Any], outcome: "asyncio.Future[None]") -> None:
    if outcome.done():
        return
    error = sent.exception()
    if error is None:
        outcome.set_result(None)
    else:
        outcome.set_exception(error)


def _quiet_client() -> None:
    """The client's lines are not shown, unless somebody has said which: while a broker is away they come by the dozen.

    The publisher says once that messages wait, and `publishing` that the crawl does.
    """
    client = logging.getLogger("kafka")
    if client.level == logging.NOTSET:
        client.setLevel(logging.CRITICAL)
