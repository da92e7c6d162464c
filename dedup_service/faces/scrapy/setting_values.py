"""Read one setting as what it has to be, and say what it may be where it is not.

Values come from Python (`3`, `True`) and from command lines (`"3"`, `"True"`); both are read alike.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dedup_service.core.errors import ConfigurationError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

__all__ = ["choice", "flag", "pairs", "seconds", "whole"]


def choice(settings: "BaseSettings", name: str, kind: Any, default: Any) -> Any:
    """Return the member of the enumeration `kind` that the setting names."""
    value = settings.get(name, default)
    try:
        return kind(value)
    except ValueError:
        raise ConfigurationError(f"{name} is one of {', '.join(kind)}, got {value!r}") from None


def whole(settings: "BaseSettings", name: str, default: Any, least: int = 1) -> Any:
    """Return the setting as a whole number of at least `least`; `default` as it is where there is none."""
    value = settings.get(name)
    if value is None:
        return default
    number = int(value) if str(value).strip().isdecimal() else None
    if isinstance(value, bool) or number is None or number < least:
        raise ConfigurationError(f"{name} is a whole number from {least}, got {value!r}")
    return number


def seconds(settings: "BaseSettings", name: str, default: float) -> float:
    """Return the setting as a number of seconds above 0."""
    value = settings.get(name, default)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < float("inf"):
        raise ConfigurationError(f"{name} is a number of seconds above 0, got {value!r}")
    return number


def flag(settings: "BaseSettings", name: str) -> bool:
    """Return the setting as True or False; False where there is none."""
    try:
        return bool(settings.getbool(name, False))
    except ValueError:
        raise ConfigurationError(f"{name} is True or False, got {settings.get(name)!r}") from None


def pairs(settings: "BaseSettings", name: str) -> dict[str, str]:
    """Return a setting of names and values: a dict, a list of `name=value`, or JSON of either on a command line.

    The message of an error names no value: one of them may be a password.
    """
    try:
        value = settings.getdictorlist(name)
    except ValueError:
        raise ConfigurationError(f"{name} is a dict, or a list of name=value, and is neither here") from None
    if isinstance(value, Mapping):
        return {str(key): str(entry) for key, entry in value.items()}
    split = [str(entry).partition("=") for entry in value]
    wrong = [key for key, equals, _ in split if not equals or not key.strip()]
    if wrong:
        raise ConfigurationError(f"{name} lists name=value, one entry has no name or no value ({len(split)} entries)")
    return {key.strip(): entry for key, _, entry in split}
