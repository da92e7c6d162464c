"""Error classes by cause: the configuration, a record, or the stored state.

A caller decides by the type of an error, and by `retryable` on its class, never by its text. A message names
both values that disagree, and what to do.
"""

from typing import ClassVar


class TwinsieveError(Exception):
    """Base class of every error that this project raises on purpose.

    Attributes:
        retryable: Whether the same call may succeed later.

    Example:
        >>> issubclass(RecordError, TwinsieveError), RecordError.retryable
        (True, False)
    """

    retryable: ClassVar[bool] = False


class ConfigurationError(TwinsieveError):
    """A setting, an argument or a resource is wrong. Nothing was changed.

    What to do: correct the value that the message names, and start again.
    """


class RecordError(TwinsieveError):
    """One record of the input is wrong. Other records are not affected.

    What to do: set the record aside, report it, and go on with the next one.
    """


class StateError(TwinsieveError):
    """The stored state contradicts the request. Nothing was changed.

    What to do: inspect the state that the message names before trying again.
    """


class InternalError(TwinsieveError):
    """A fault of twinsieve in its native core. What is on the disk is as the last commit left it.

    What to do: report it, and start again; the state continues from its last commit.
    """
