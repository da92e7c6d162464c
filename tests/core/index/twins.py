"""Different hashes of which a hash table knows the same bits: what would take a hundred thousand random ones."""

from dedup_service.core.splitmix import FIRST_MULTIPLIER, GAMMA, SECOND_MULTIPLIER, splitmix64

WORD = (1 << 64) - 1


def unmixed(value: int) -> int:
    """Return the hash that SplitMix64's finaliser mixes to this value."""
    value ^= value >> 31 ^ value >> 62
    value = value * pow(SECOND_MULTIPLIER, -1, 1 << 64) & WORD
    value ^= value >> 27 ^ value >> 54
    value = value * pow(FIRST_MULTIPLIER, -1, 1 << 64) & WORD
    return value ^ value >> 30 ^ value >> 60


def twin(value: int, number: int) -> int:
    """Return another hash with the same first 41 mixed bits. number: 1 to 2**23 - 1, which one."""
    return unmixed(splitmix64(value - GAMMA & WORD) ^ number)
