"""SplitMix64, which makes of a number another one in which every bit depends on every bit: of sequences, in metadata.

Changing anything here changes evidence and which pages are checked again.

Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
"""

GAMMA = 0x9E3779B97F4A7C15
"""What SplitMix64 adds for each new value: 2**64 divided by the golden ratio, made odd."""

FIRST_MULTIPLIER, SECOND_MULTIPLIER = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WORD = (1 << 64) - 1


def splitmix64(value: int) -> int:
    """Return the output of SplitMix64 for a state, which is taken modulo 2**64: a bijection of [0, 2**64).

    >>> hex(splitmix64(0))
    '0xe220a8397b1dcdaf'
    """
    mixed = (value + GAMMA) & _WORD
    mixed = ((mixed ^ (mixed >> 30)) * FIRST_MULTIPLIER) & _WORD
    mixed = ((mixed ^ (mixed >> 27)) * SECOND_MULTIPLIER) & _WORD
    return mixed ^ (mixed >> 31)
