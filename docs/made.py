"""Write what of the documents is made from the code: python -m docs.made.

A part is between `<!-- made by … -->`, which names it, and `<!-- end -->`; all else in a page is written by hand.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from docs import api, commands, settings

FOLDER = Path(__file__).parent
PARTS: dict[str, Callable[[str], str]] = {
    "api.md": api.names,
    "commands.md": commands.part,
    "settings.md": settings.part,
}
"""Page → what writes a part of it, given its name."""

_PART = re.compile(r"^(<!-- made by `python -m docs\.made`: (.+) -->\n)(?:.*\n)*?(<!-- end -->)$", re.MULTILINE)


def page(name: str) -> str:
    """Return the text of a page with the parts of this code."""
    return _PART.sub(partial(_written, PARTS[name]), (FOLDER / name).read_text("utf-8"))


def _written(write: Callable[[str], str], part: re.Match[str]) -> str:
    return f"{part[1]}\n{write(part[2])}\n{part[3]}"


if __name__ == "__main__":
    for name in PARTS:
        (FOLDER / name).write_text(page(name), "utf-8")
