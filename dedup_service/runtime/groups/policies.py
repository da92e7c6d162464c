"""A policy of canonical pages by its text, which may name a function of the user's."""

import importlib
import re
import sys
from collections.abc import Callable
from typing import Any

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.groups.canonical import CanonicalPolicy, canonical_policy
from dedup_service.core.groups.member import GroupMember

_FUNCTION = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)")


def read_policy(text: str) -> CanonicalPolicy:
    """Return the policy that `text` states: one of `core.groups.canonical`, or `MODULE:FUNCTION`.

    The module is one that Python finds, also in the current folder. The function takes a `GroupMember` and returns
    what it is compared by, the least first. Raises ConfigurationError if there is no such function; the policy does so
    if the function fails.
    """
    found = _FUNCTION.fullmatch(text.strip())
    if found is None or found[1] == "hosts":
        return canonical_policy(text)
    function = _function(found[1], found[2])

    def key(member: GroupMember) -> Any:
        try:
            return function(member)
        except (Exception, SystemExit) as error:
            raise ConfigurationError(f"--canonical {found[0]} failed on {member.url}: {error!r}") from error

    return CanonicalPolicy(found[0], key, asks_host_text=True)


def _function(module: str, name: str) -> Callable[[GroupMember], Any]:
    if "" not in sys.path:
        sys.path.append("")  # last: a file of the current folder hides no module of another package
    try:
        function = getattr(importlib.import_module(module), name, None)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"--canonical {module}:{name}: {module} cannot be imported: {error!r}") from error
    if not callable(function):
        raise ConfigurationError(f"--canonical {module}:{name}: {module} has no function {name}")
    return function  # type: ignore[no-any-return]
