"""Test pages for the command line, and the result of a run."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

WORDS = (
    *("harbour", "council", "bridge", "river", "opened", "morning", "ferry", "market", "school", "teacher"),
    *("garden", "winter", "library", "train", "station", "repair", "budget", "meeting", "weather", "storm"),
    *("island", "festival", "music", "bakery", "farmer", "orchard", "museum", "painter", "stadium", "runner"),
)


class Ran(NamedTuple):
    """The result of one run of the command line."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of JSON on standard output."""
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., Ran]


def article(seed: int, words: int = 120) -> str:
    """Return a random text; each seed gives another one."""
    source = random.Random(seed)
    return " ".join(source.choice(WORDS) + source.choice(["", "", "s", "ed"]) for _ in range(words))


def page(number: int, text: str | None = None, **more: object) -> dict[str, object]:
    """Return a page as the values of a JSON line."""
    values = {"id": f"p{number}", "url": f"https://news.example/{number}", "title": f"Story {number}"}
    return values | {"text": article(number) if text is None else text} | more


def write_lines(path: Path, values: Sequence[object]) -> Path:
    """Write `values` as JSON lines; bytes are written unchanged."""
    lines = [value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode() for value in values]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path
