"""A share of a count, with Wilson's interval at 95%. Source: Wilson, JASA 22, 1927."""

import math
from dataclasses import dataclass

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Share:
    """`hits` of `total`."""

    hits: int
    total: int

    @property
    def value(self) -> float:
        """The share, 0 to 1; nan if the total is 0."""
        return self.hits / self.total if self.total else math.nan

    @property
    def interval(self) -> Interval:
        """Wilson's interval at 95%."""
        if not self.total:
            return 0.0, 1.0
        z, p, n = 1.959964, self.hits / self.total, self.total
        centre, spread = p + z * z / 2 / n, z * math.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
        return max(0.0, (centre - spread) / (1 + z * z / n)), min(1.0, (centre + spread) / (1 + z * z / n))
