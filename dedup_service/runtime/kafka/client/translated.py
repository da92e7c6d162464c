"""The client's exceptions as ours, by what a caller would do about them.

The client wraps: a producer that has failed raises plain `KafkaError` with the reason among its arguments, from every
call. So all that an error leads to is looked at, and the first that says something decides.
"""

from collections.abc import Iterator

from kafka import errors

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.runtime.kafka.client.errors import BrokerError, NotAuthorisedError

__all__ = ["FENCED", "PASSING", "TOO_LARGE", "for_good", "passing", "reasons"]

FENCED = (
    errors.ProducerFencedError,
    errors.InvalidProducerEpochError,
    errors.TransactionCoordinatorFencedError,
    errors.InvalidProducerIdMappingError,
)
TOO_LARGE = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)
PASSING = (errors.KafkaError, OSError, RuntimeError)
"""What a client may raise while brokers come and go; RuntimeError: its event loop ended under a call."""

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


def reasons(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and everything that it names as its reason, outermost first."""
    if error is None:
        return
    yield error
    for argument in error.args:
        if isinstance(argument, BaseException):
            yield from reasons(argument)
    if error.__cause__ is not None:
        yield from reasons(error.__cause__)


def for_good(error: BaseException, doing: str, *more: BaseException | None) -> TwinsieveError | None:
    """Return our error for what no second try will change, None for what may pass. `more`: other possible reasons."""
    for reason in (found for one in (error, *more) for found in reasons(one)):
        if isinstance(reason, errors.AuthorizationError | errors.SaslAuthenticationFailedError):
            return NotAuthorisedError(f"the brokers refuse {doing}: {_text(reason)}; {_what_to_grant(reason)}")
        if isinstance(reason, _SETTINGS) or _names_setting(reason):
            return ConfigurationError(f"{doing}: {_text(reason)}")
    return None


def passing(error: BaseException, doing: str) -> BrokerError:
    """Return our error for what may pass."""
    return BrokerError(f"{doing}: {_text(error)}; try again")


def _names_setting(reason: BaseException) -> bool:
    """Whether the client has put the error's name into the text of another one, as it does for unexpected ones."""
    return any(kind.__name__ in str(reason) for kind in _SETTINGS)


def _what_to_grant(reason: BaseException) -> str:
    if isinstance(reason, errors.SaslAuthenticationFailedError):
        return "correct user and password (sasl_plain_username, sasl_plain_password)"
    if isinstance(reason, errors.TransactionalIdAuthorizationFailedError):
        return "grant the user Write and Describe on the transactional id"
    if isinstance(reason, errors.GroupAuthorizationFailedError):
        return "grant the user Read on the group"
    if isinstance(reason, errors.TopicAuthorizationFailedError):
        return "grant the user Read, Write and Describe on the topic"
    return "grant the user what the message names"


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
