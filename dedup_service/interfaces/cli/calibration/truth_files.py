"""What people know of pages or pairs, as lines of JSON.

Pages: `{"id", "duplicate_of"}`, and where known `group` (pages that tell the same; else followed from `duplicate_of`),
`strength` (S1 to S5: how much was changed), `operator` (what was done, or what kind of page it is). Pairs:
`{"a", "b", "label"}` with `dup`, `not` or anything between, and `kind`, `lang`.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evaluation.scoring import LEFT_OUT, LabelledPair, TruthRow

__all__ = ["Truth", "read_truth"]

RECRAWL = "recrawl"
Truth = list[TruthRow] | list[LabelledPair]


class _Line(msgspec.Struct, frozen=True):
    id: str | None = None
    duplicate_of: str | None = None
    group: str | None = None
    operator: str | None = None
    strength: str | None = None
    a: str | None = None
    b: str | None = None
    label: str | None = None
    kind: str | None = None
    lang: str | None = None


def read_truth(path: Path) -> Truth:
    """Return the rows of a file, all of pages or all of pairs; ConfigurationError names the first line at fault."""
    lines = _lines(path)
    if not lines:
        raise ConfigurationError(f"{path} is empty: it should say what is known of the pages, a line each")
    pairs = lines[0].id is None
    for number, line in enumerate(lines, 1):
        complete = (line.a and line.b and line.label) if pairs else line.id
        if not complete:
            needs = "a, b and label" if pairs else "an id"
            raise ConfigurationError(f"{path}, line {number}: needs {needs}, as the first line has")
    return _pairs(lines) if pairs else _pages(lines)


def _lines(path: Path) -> list[_Line]:
    decoder = msgspec.json.Decoder(_Line)
    found = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            found += [decoder.decode(line)] if line.strip() else []
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path}, line {number}: {error}") from error
    return found


def _pages(lines: Sequence[_Line]) -> list[TruthRow]:
    parents = {line.id: line.duplicate_of for line in lines if line.id is not None}
    return [_page(line, line.group or _root(line.id or "", parents)) for line in lines]


def _page(line: _Line, group: str) -> TruthRow:
    operator, strength = line.operator or "page", line.strength
    again = operator.startswith(RECRAWL)
    positive = None if again or strength in LEFT_OUT else line.duplicate_of is not None
    if positive:
        strata = (*((f"strength {strength}",) if strength else ()), f"operator {operator}")
    elif positive is None and not again:
        strata = (f"strength {strength}", f"operator {operator}")
    else:
        strata = (operator,)
    return TruthRow(line.id or "", group, positive, strata)


def _root(page: str, parents: dict[str, str | None]) -> str:
    """Return the first page of the chain that `page` repeats."""
    seen = {page}
    while (parent := parents.get(page)) is not None and parent not in seen:
        page = parent
        seen.add(page)
    return page


def _pairs(lines: Sequence[_Line]) -> list[LabelledPair]:
    roots = _Components()
    for line in lines:
        roots.join(line.a or "", line.b or "")
    labels = {"dup": True, "not": False}
    return [
        LabelledPair(
            line.a or "",
            line.b or "",
            labels.get(line.label or ""),
            roots.of(line.a or ""),
            tuple(f"{name} {value}" for name, value in (("kind", line.kind), ("lang", line.lang)) if value),
        )
        for line in lines
    ]


class _Components:
    """Pages that pairs join, each set named by its smallest id."""

    def __init__(self) -> None:
        self._up: dict[str, str] = {}

    def of(self, page: str) -> str:
        """Return the name of the set that `page` is in."""
        while (up := self._up.setdefault(page, page)) != page:
            self._up[page] = page = self._up[up]
        return page

    def join(self, one: str, other: str) -> None:
        """Make one set of two."""
        minimum, maximum = sorted((self.of(one), self.of(other)))
        self._up[maximum] = minimum
