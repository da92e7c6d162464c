"""Which errors of the library are worth another attempt, and at what pace to try and to warn.

Translation: the library wraps its errors; a producer that has failed raises plain `KafkaError`, with the
reason among its arguments, from every call. So every reason that an error leads to is examined, and the
first known one decides. `permanent_error` gives our error for what no second try changes (rights, settings);
everything else in TRANSIENT may pass, and becomes `transient_error` if the caller does not wait.
Pace: pauses grow exponentially, with jitter; a warning about a lasting problem is logged once in 30 s.
"""

import logging
import random
import shlex
import threading
import time
from collections.abc import Iterator

from kafka import errors

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.runtime.kafka.client.errors import BrokerError, NotAuthorisedError

FENCED = (
    errors.ProducerFencedError,
    errors.InvalidProducerEpochError,
    errors.TransactionCoordinatorFencedError,
    errors.InvalidProducerIdMappingError,
)
TOO_LARGE = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)
TRANSIENT = (errors.KafkaError, OSError, RuntimeError)
"""What the library may raise while brokers are unavailable; RuntimeError: its event loop ended during a call."""

_SETTINGS = (
    errors.KafkaConfigurationError,
    errors.InvalidSessionTimeoutError,
    errors.InvalidTransactionTimeoutError,
    errors.InconsistentGroupProtocolError,
    errors.InvalidGroupIdError,
    errors.InvalidTopicError,
    errors.UnsupportedSaslMechanismError,
    errors.UnsupportedCodecError,
    errors.UnsupportedVersionError,
)

_WRITES_NOWHERE = ("InitProducerIdResponse", "ClusterAuthorizationFailedError")
"""Words of the library's error for a producer whose user has *Write* on no topic; its class is a plain KafkaError."""

WARN_EVERY_S = 30.0


class ThrottledWarning:
    """Logs a problem once it has lasted `after_s`, then every `every_s`, and when it is over."""

    def __init__(
        self, logger: logging.Logger, what: str, *, after_s: float = 0.0, every_s: float = WARN_EVERY_S
    ) -> None:
        self._logger = logger
        self._what = what
        self._after_s = after_s
        self._every_s = every_s
        self._since: float | None = None
        self._logged_at: float | None = None

    def about(self, error: BaseException | str) -> None:
        """Report the problem."""
        now = time.monotonic()
        if self._since is None:
            self._since, self._logged_at = now, None
        if now - self._since < self._after_s:
            return
        if self._logged_at is None or now - self._logged_at >= self._every_s:
            self._logged_at = now
            self._logger.warning("%s (since %.0f s): %s", self._what, now - self._since, error)

    def over(self) -> None:
        """Report that it works again."""
        if self._since is not None and self._logged_at is not None:
            self._logger.info("%s: over after %.1f s", self._what, time.monotonic() - self._since)
        self._since = self._logged_at = None


class Backoff:
    """Pauses between attempts: from `first_s`, doubled up to `longest_s`, with jitter.

    `stop` ends a pause.
    """

    def __init__(
        self,
        stop: threading.Event | None = None,
        *,
        first_s: float = 0.1,
        longest_s: float = 2.0,
        warning: ThrottledWarning | None = None,
    ) -> None:
        self._stop = stop or threading.Event()
        self._failures = 0
        self._first_s = first_s
        self._longest_s = longest_s
        self._warning = warning

    @property
    def stopped(self) -> bool:
        """Whether `stop` is set, and no further attempt is wanted."""
        return self._stop.is_set()

    def wait(self, error: BaseException) -> None:
        """Pause after an attempt that failed with `error`."""
        if self._warning:
            self._warning.about(error)
        self._failures += 1
        pause_after(self._failures, self._stop, first_s=self._first_s, longest_s=self._longest_s)


def pause_after(failures: int, stop: threading.Event, *, first_s: float = 0.1, longest_s: float = 2.0) -> bool:
    """Pause after so many failures in a row, with jitter.

    Return whether `stop` ended it. Times in seconds.
    """
    return stop.wait(random.uniform(0.5, 1.0) * min(longest_s, first_s * 2.0 ** min(failures - 1, 30)))  # noqa: S311 - jitter


def reasons(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and every error that it gives as its reason, outermost first."""
    if error is None:
        return
    yield error
    for argument in error.args:
        if isinstance(argument, BaseException):
            yield from reasons(argument)
    if error.__cause__ is not None:
        yield from reasons(error.__cause__)


def permanent_error(
    error: BaseException, action: str, *more: BaseException | None, needs: str = "Describe", transactional_id: str = ""
) -> TwinsieveError | None:
    """Return our error for what no second try changes, None for what may pass.

    `more`: other possible reasons.
    action: what was attempted, as "to …", for the message. needs: the operation on a topic that it needs, as
    Kafka's access control lists name it. transactional_id: of the producer, if it has one.
    """
    for reason in (reason for one in (error, *more) for reason in reasons(one)):
        if isinstance(reason, errors.SaslAuthenticationFailedError):
            advice = "correct user and password (sasl_plain_username, sasl_plain_password)"
            return NotAuthorisedError(f"the brokers refuse {action}: {_text(reason)}; {advice}")
        if isinstance(reason, errors.AuthorizationError):
            advice = _what_to_grant(reason, needs, transactional_id)
            return NotAuthorisedError(f"the brokers refuse {action}: {type(reason).__name__}; {advice}")
        if all(word in str(reason) for word in _WRITES_NOWHERE):
            return NotAuthorisedError(
                f"the brokers refuse {action}: the user may write to no topic; grant the user Write on that topic: "
                "kafka-acls.sh --add --allow-principal User:NAME --operation Write --topic TOPIC"
            )
        if isinstance(reason, _SETTINGS) or _names_setting(reason):
            return ConfigurationError(f"{action}: {_text(reason)}")
    return None


def transient_error(error: BaseException, action: str) -> BrokerError:
    """Return our error for what may pass by itself."""
    return BrokerError(f"{action}: {_text(error)}; try again")


def _names_setting(reason: BaseException) -> bool:
    """Whether the library named a settings error in the text of another one, as for unexpected errors."""
    return any(kind.__name__ in str(reason) for kind in _SETTINGS)


def _what_to_grant(reason: BaseException, needs: str, transactional_id: str) -> str:
    """Return the resource, the operation that the user lacks, and the command that grants it."""
    operations: tuple[str, ...]
    if isinstance(reason, errors.TransactionalIdAuthorizationFailedError):
        what, option = f"Write and Describe on the transactional id {transactional_id}", "--transactional-id"
        operations, names = ("Write", "Describe"), [transactional_id]
    elif isinstance(reason, errors.GroupAuthorizationFailedError):
        operations, names, option = ("Read",), _names(reason), "--group"
        what = f"Read on the group {', '.join(names)}"
    elif isinstance(reason, errors.TopicAuthorizationFailedError):
        operations, names, option = (needs,), _names(reason), "--topic"
        what = f"{needs} on the topic {', '.join(names)}"
    else:
        return "grant the user what the message names, on the cluster (kafka-acls.sh --add --cluster)"
    command = " ".join(
        [
            "kafka-acls.sh --add --allow-principal User:NAME",
            *(f"--operation {operation}" for operation in operations),
            *(f"{option} {shlex.quote(name)}" for name in names if name),
        ]
    )
    return f"grant the user {what}: {command}"


def _names(reason: BaseException) -> list[str]:
    """Return the resources that the library put into its error: one name, or a set of them."""
    first = reason.args[0] if reason.args else ""
    names = [first] if isinstance(first, str) else first
    return sorted(str(name) for name in names)


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
