"""The installed jieba package, which is read without importing it, and where its mapped dictionary is kept."""

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import platformdirs

from dedup_service.core.errors import ConfigurationError


def jieba_folder() -> Path:
    """Return the folder of the installed jieba; ConfigurationError if there is none."""
    spec = find_spec("jieba")
    if spec is None or spec.origin is None:
        raise ConfigurationError("jieba is not installed, whose dictionary cuts Chinese text: install it")
    return Path(spec.origin).parent


def cache_folder() -> Path | None:
    """Return where the crate keeps the dictionary: TWINSIEVE_CACHE_DIR, or `twinsieve` in the user's cache folder.

    None if the user has no home, as one that a container was given by its number.
    """
    if named := os.environ.get("TWINSIEVE_CACHE_DIR"):
        return Path(named)
    try:
        folder = Path(platformdirs.user_cache_dir("twinsieve"))
    except RuntimeError:  # there is no home
        return None
    return folder if folder.is_absolute() else None  # earlier releases say `~/.cache/twinsieve` then


@cache
def parts_of_speech() -> dict[str, str]:
    """Return the part of speech of each word of jieba's dictionary; ConfigurationError if it cannot be read."""
    path = jieba_folder() / "dict.txt"
    try:
        lines = [line.split(" ") for line in path.read_text(encoding="utf-8").splitlines()]
        return {word: tag for word, _, tag in lines}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot read {path} of jieba: {error}") from error
