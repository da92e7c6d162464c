"""Lengths of time on the command line and in tables: `90s`, `30m`, `12h`, `7d`, `forever`."""

import re

import click

__all__ = ["duration_ms", "said"]

_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_FOREVER_MS = -1


def duration_ms(context: click.Context, parameter: click.Parameter, value: str) -> int:
    """Milliseconds of a length of time, -1 for ever, as Kafka has it; an option's callback."""
    if value == "forever":
        return _FOREVER_MS
    found = re.fullmatch(r"([0-9]+)([smhd])", value.strip())
    if not found or not int(found[1]):
        raise click.BadParameter(f"{value!r} is none: write 90s, 30m, 12h, 7d or forever", context, parameter)
    return int(found[1]) * _UNITS_MS[found[2]]


def said(duration_ms: int) -> str:
    """The shortest exact way to write it.

    >>> said(604_800_000), said(-1), said(90_000), said(1)
    ('7d', 'forever', '90s', '1ms')
    """
    if duration_ms < 0:
        return "forever"
    for unit, size_ms in sorted(_UNITS_MS.items(), key=lambda pair: -pair[1]):
        if duration_ms and duration_ms % size_ms == 0:
            return f"{duration_ms // size_ms}{unit}"
    return f"{duration_ms}ms"
