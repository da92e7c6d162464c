"""Pages to feed the command line, and what a run of it gives back."""

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
    """What one run of the command line gave."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of JSON on standard output."""
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., Ran]


def article(seed: int, words: int = 120) -> str:
    """A text of its own for every seed."""
    source = random.Random(seed)
    return " ".join(source.choice(WORDS) + source.choice(["", "", "s", "ed"]) for _ in range(words))


def page(number: int, text: str | None = None, **more: object) -> dict[str, object]:
    """A page as a line of JSON describes it."""
    values = {"id": f"p{number}", "url": f"https://news.example/{number}", "title": f"Story {number}"}
    return values | {"text": article(number) if text is None else text} | more


def write_lines(path: Path, values: Sequence[object]) -> Path:
    """Write `values` as JSON lines, bytes as they are."""
    lines = [value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode() for value in values]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path
