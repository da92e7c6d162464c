"""What can go wrong between us and the brokers: one class for each thing that a caller would do about it.

`retryable` says whether the same call may succeed later without any change by a person. How exceptions of
the library become these: `retry`. This module and `config` do not import the library, so they work
without it.
"""

from typing import ClassVar

from dedup_service.core.errors import ConfigurationError, StateError, TwinsieveError


class BrokerError(TwinsieveError):
    """The brokers did not do what was requested. Try again, after a pause."""

    retryable: ClassVar[bool] = True


class UnreachableError(BrokerError):
    """No broker answered.

    Check address, TLS and password as the message says; the broker may also just be away.
    """


class TransactionLostError(BrokerError):
    """The transaction was not, or may not have been, committed.

    Rewind to the committed offsets and continue.
    """


class AppendLostError(BrokerError):
    """Messages were not, or may not have been, appended. Append them again: readers recognise those that are there."""


class NotAuthorisedError(BrokerError):
    """The brokers refuse this user. Correct name and password, or grant the right that the message names."""

    retryable: ClassVar[bool] = False


class RecordTooLargeError(BrokerError):
    """One message is larger than producer or topic allow. Raise both limits, or set the record aside.

    `position`: index of the message among those that were to be written.
    """

    retryable: ClassVar[bool] = False

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class InstanceInUseError(BrokerError):
    """Another process took our place in the group under the same instance name. Stop one, or rename one."""

    retryable: ClassVar[bool] = False


class LogChangedError(StateError):
    """A topic no longer holds what was read from it: deleted, truncated or created again.

    Inspect the topic first.
    """


class OptionError(ConfigurationError):
    """An option of the connection is unknown, set by the service, or of the wrong type.

    Correct or remove it.
    """
