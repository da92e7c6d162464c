"""How often one address may ask: a bucket of so many requests, refilled at a steady rate.

Ours because it is one function of a dictionary; the libraries for it bring stores and strategies of which this needs
none. Bounded: of many addresses those that asked last are remembered.
"""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["RateLimiter"]

MAX_ADDRESSES = 4096


class RateLimiter:
    """burst: requests at once; per_s: on average. clock: monotonic seconds. One thread uses it."""

    def __init__(self, burst: float, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst, self._per_s, self._clock = burst, per_s, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def wait_s(self, address: str, *, take: bool = True) -> float:
        """Return 0 where `address` may ask now, and count the request where `take`; else the seconds until it may."""
        now, key = self._clock(), _network(address)
        left, at = self._buckets.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_s)
        wait_s = 0.0 if left >= 1 else (1 - left) / self._per_s
        self._buckets[key] = (left - 1 if take and not wait_s else left, now)
        if len(self._buckets) > MAX_ADDRESSES:
            self._buckets.popitem(last=False)
        return wait_s


def _network(address: str) -> str:
    """An IPv6 customer has 2**64 addresses at least, so their first half counts."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.IPv6Address(int(ip) >> 64 << 64))
