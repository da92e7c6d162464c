"""Faults of the native core are errors like any other."""

import pytest

from dedup_service._native import panic_on_purpose
from dedup_service.core.errors import InternalError


def test_a_panic_is_an_internal_error() -> None:
    """It has the message of the panic, and says what to do."""
    with pytest.raises(InternalError, match="a fault of twinsieve: no such place; report it"):
        panic_on_purpose("no such place")
