"""How many examples each parser gets: few in `make test`, and the same ones each time; many in `make fuzz`."""

import os
from typing import Any

from hypothesis import HealthCheck, settings

TOTAL = "TWINSIEVE_FUZZ_EXAMPLES"
"""Environment variable: the examples of all parsers together."""

_FEW = 4_000
_SLOW_EXAMPLES = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.function_scoped_fixture,
]


def fuzzed(per_mille: int) -> Any:
    """Return hypothesis settings with so many of a thousand examples. `make fuzz` draws new ones each time."""
    total = os.environ.get(TOTAL)
    return settings(
        max_examples=max(1, int(total or _FEW) * per_mille // 1000),
        deadline=None,  # `budget` measures processor time instead
        derandomize=total is None,
        print_blob=total is not None,
        suppress_health_check=_SLOW_EXAMPLES,
    )
