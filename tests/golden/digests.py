"""What is compared: the digests of the verdicts of a crawl, as lines of JSON.

`exact` is of the lines as users get them. `judged` is of the lines without their places: a service numbers its
records by messages, whose sizes depend on the time, and adds where the page was in `pages`. `blocks` are of 1,000
verdicts each, for long sets, so that a difference can be placed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

BLOCK = 1_000
PLACES = frozenset({"sequence", "topic", "partition", "offset"})

Golden = Mapping[str, Mapping[str, Any]]
"""Digests by the name of a set."""


@dataclass(frozen=True, slots=True)
class Digests:
    """The digests of the verdicts of one set. exact: None if the way numbers its records otherwise."""

    pages: int
    judged: str
    exact: str | None
    blocks: tuple[str, ...] = ()

    def expected(self) -> dict[str, Any]:
        """Return what the file of digests has of them."""
        blocks = {"blocks": list(self.blocks)} if self.blocks else {}
        return {"pages": self.pages, "judged": self.judged, "exact": self.exact} | blocks


def digests_of(lines: Sequence[bytes], *, is_exact: bool = True) -> Digests:
    """Return the digests of verdicts as lines of JSON, one for each page in crawl order."""
    blocks = [_digest(lines[start : start + BLOCK]) for start in range(0, len(lines), BLOCK)]
    return Digests(
        len(lines),
        _digest(list(map(_judged, lines))),
        _digest(lines) if is_exact else None,
        tuple(blocks) if len(blocks) > 1 else (),
    )


def difference(found: Digests, expected: Mapping[str, Any] | None) -> str | None:
    """Return how verdicts differ from the expected digests, or None."""
    if expected is None:
        return "no digest to compare with"
    if found.pages != expected["pages"]:
        return f"{found.pages} verdicts, expected {expected['pages']}"
    if found.exact is None:
        return None if found.judged == expected["judged"] else "other verdicts"
    if found.exact == expected["exact"]:
        return None
    pairs = enumerate(zip(found.blocks, expected.get("blocks", ()), strict=False))
    first = next((block for block, (ours, theirs) in pairs if ours != theirs), None)
    where = "" if first is None else f" from {first * BLOCK + 1} to {(first + 1) * BLOCK} on"
    return f"other {'sequences' if found.judged == expected['judged'] else 'verdicts'}{where}"


def read_digests(path: Path) -> dict[str, Any]:
    """Return the digests in a file by set; none if there is no file."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def write_digests(path: Path, golden: Golden) -> None:
    """Write digests by set."""
    path.write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _digest(lines: Sequence[bytes]) -> str:
    return sha256(b"".join(lines)).hexdigest()


def _judged(line: bytes) -> bytes:
    fields = {name: value for name, value in json.loads(line).items() if name not in PLACES}
    return json.dumps(fields, sort_keys=True).encode() + b"\n"
