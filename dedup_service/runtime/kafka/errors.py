"""What can go wrong between us and the brokers, one class for each thing that a caller would do about it.

`retryable` says whether the same call may succeed later without anybody changing anything.
"""

from typing import ClassVar

from dedup_service.core.errors import StateError, TwinsieveError

__all__ = [
    "BrokerError",
    "InstanceInUseError",
    "LogChangedError",
    "NotAuthorisedError",
    "RecordTooLargeError",
    "TransactionLostError",
    "UnreachableError",
]


class BrokerError(TwinsieveError):
    """The brokers did not do what was asked. Try again, after a pause."""

    retryable: ClassVar[bool] = True


class UnreachableError(BrokerError):
    """No broker answered. Check address, TLS and password as the message says; it may also just be away."""


class TransactionLostError(BrokerError):
    """The transaction was not, or may not have been, committed. Rewind to the committed offsets and go on."""


class NotAuthorisedError(BrokerError):
    """The brokers refuse this user the deed. Grant the right that the message names, then start again."""

    retryable: ClassVar[bool] = False


class RecordTooLargeError(BrokerError):
    """One message is larger than producer or topic allow. Raise both limits, or set the record aside."""

    retryable: ClassVar[bool] = False


class InstanceInUseError(BrokerError):
    """Another process took our place in the group under the same instance name. Stop one, or name it differently."""

    retryable: ClassVar[bool] = False


class LogChangedError(StateError):
    """The log no longer holds what was read from it: deleted, truncated or made anew. Look at the topic first."""
