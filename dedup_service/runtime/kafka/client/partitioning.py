"""Which partition a key belongs to: the answer of every Kafka client, computed by compiled code.

The library hashes keys in Python, which takes longer than all else it does with a small message.
Source: murmur2 as in Kafka's own `Utils.murmur2`, after Austin Appleby; positive part modulo the number of partitions.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from kafka.partitioner.default import DefaultPartitioner

from dedup_service.core.kernels import kernel

__all__ = ["KeyPartitioner", "murmur2"]

_SEED = np.uint32(0x9747B28C)
_M = np.uint32(0x5BD1E995)


class KeyPartitioner(DefaultPartitioner):  # type: ignore[misc]
    """As the library's; a message without a key goes to any partition."""

    def partition(
        self, topic: str, key: Any, serialized_key: bytes | None, value: Any, serialized_value: Any, cluster: Any
    ) -> int:
        """Return the number of the partition; ValueError where the topic is not known."""
        numbers = cluster.partitions_for_topic(topic) if serialized_key is not None else None
        if not numbers or serialized_key is None:
            found: int = super().partition(topic, key, serialized_key, value, serialized_value, cluster)
            return found
        return (murmur2(serialized_key) & 0x7FFFFFFF) % len(numbers)


def murmur2(data: bytes) -> int:
    """Return the hash of `data`, 0 to 2**32 - 1.

    >>> murmur2(b"21") & 0x7FFFFFFF
    1173551340
    """
    return int(_murmur2(np.frombuffer(data, np.uint8)))


@kernel
def _murmur2(data: npt.NDArray[np.uint8]) -> np.uint32:
    """The hash of data: uint8[n]."""
    length = data.size
    h = _SEED ^ np.uint32(length)
    whole = length - length % 4
    for start in range(0, whole, 4):
        k = (
            np.uint32(data[start])
            | np.uint32(data[start + 1]) << np.uint32(8)
            | np.uint32(data[start + 2]) << np.uint32(16)
            | np.uint32(data[start + 3]) << np.uint32(24)
        )
        k = np.uint32(k * _M)
        k ^= k >> np.uint32(24)
        k = np.uint32(k * _M)
        h = np.uint32(h * _M) ^ k
    for place in range(length - 1, whole - 1, -1):
        h ^= np.uint32(data[place]) << np.uint32(8 * (place - whole))
    if whole < length:
        h = np.uint32(h * _M)
    h ^= h >> np.uint32(13)
    h = np.uint32(h * _M)
    h ^= h >> np.uint32(15)
    return np.uint32(h)
