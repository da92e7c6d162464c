"""Token-bucket rate limit by address: a burst of requests, refilled at a steady rate.

Our own code, because it is one function on a dictionary; the libraries bring stores and strategies that are
not needed here. Bounded: only the addresses with the latest requests are remembered.
"""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

MAX_ADDRESSES = 4096


class RateLimiter:
    """Limits the requests of each address; for use from one thread.

    burst: requests at once. per_s: requests per second on average. clock: monotonic seconds.
    """

    def __init__(self, burst: float, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst, self._per_s, self._clock = burst, per_s, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def wait_s(self, address: str, *, take: bool = True) -> float:
        """Return 0 if `address` may send a request now, else the seconds to wait.

        take: count the request if it may be sent.
        """
        now, key = self._clock(), _network(address)
        tokens, filled_at = self._buckets.pop(key, (self._burst, now))
        tokens = min(self._burst, tokens + (now - filled_at) * self._per_s)
        wait_s = 0.0 if tokens >= 1 else (1 - tokens) / self._per_s
        self._buckets[key] = (tokens - 1 if take and not wait_s else tokens, now)
        if len(self._buckets) > MAX_ADDRESSES:
            self._buckets.popitem(last=False)
        return wait_s


def _network(address: str) -> str:
    """Return what to count by: an IPv4 address, or the first half of an IPv6 one (a customer has all of it)."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.IPv6Address(int(ip) >> 64 << 64))
