"""Hashes that turn a feature into bits.

The default is xxh3, in which every output bit depends on every input bit. The seed's Java program uses a
rolling hash without that property, which is kept for comparison and to reproduce its values.
"""

from collections.abc import Callable

import xxhash

from dedup_service.core.errors import ConfigurationError

HASHES = ("xxh3", "java")


def xxh3(word: str, bits: int = 64) -> int:
    """Return the xxh3 hash of the word's UTF-8 bytes: an unsigned integer of 64 or 128 bits."""
    data = word.encode("utf-8", "surrogatepass")
    return xxhash.xxh3_64_intdigest(data) if bits == 64 else xxhash.xxh3_128_intdigest(data)


def java_hash(word: str, bits: int = 64) -> int:
    """Return the seed program's rolling hash: x = u₀·2⁷; x = (x·1000003 ⊕ u) mod 2^f per unit; x ⊕ length.

    Units are UTF-16. An empty word hashes to 0. Source: SimHash introduction with Java code, section 4.
    """
    data = word.encode("utf-16-le", "surrogatepass")
    units = [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data), 2)]
    if not units:
        return 0
    mask = (1 << bits) - 1
    value = units[0] << 7
    for unit in units:
        value = (value * 1000003 ^ unit) & mask
    return value ^ len(units)


def word_hasher(name: str) -> Callable[[str, int], int]:
    """Return the hash `name` (xxh3 or java) as a function of word and bits.

    Raises ConfigurationError for another name.
    """
    hashes = {"xxh3": xxh3, "java": java_hash}
    if name not in hashes:
        raise ConfigurationError(f"the hash is one of {', '.join(HASHES)}, got {name!r}")
    return hashes[name]
