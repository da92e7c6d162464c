"""Errors by whose fault they are: the configuration's, a record's, or the stored state's.

Whether the same call may succeed later sits on the class (`retryable`), so that a caller decides by
type and never by reading text. A message names both values that disagree and what to do about it.
"""

from typing import ClassVar

__all__ = ["ConfigurationError", "RecordError", "StateError", "TwinsieveError"]


class TwinsieveError(Exception):
    """The root of every error that the project raises on purpose."""

    retryable: ClassVar[bool] = False


class ConfigurationError(TwinsieveError):
    """A setting, argument or resource is wrong; nothing was read or changed. Correct it and start again."""


class RecordError(TwinsieveError):
    """One record of the input is wrong. Set it aside, report it, and go on with the next."""


class StateError(TwinsieveError):
    """The stored state contradicts what is asked of it. Nothing was changed; look at the state first."""
