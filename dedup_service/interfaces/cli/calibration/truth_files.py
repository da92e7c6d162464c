"""Read files with known answers about pages or pairs, as lines of JSON.

Pages: `{"id", "duplicate_of"}`; optionally `group` (pages with the same content; otherwise derived from
`duplicate_of`), `strength` (S1 to S5: how much was changed) and `operator` (the edit, or the kind of page).
Pairs: `{"a", "b", "label"}`, with the label `dup`, `not` or another for grey pairs; optionally `kind` and
`lang`.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evaluation.scoring import LEFT_OUT, LabelledPair, TruthRow

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
    """Return the rows of a file, all about pages or all about pairs.

    Raises ConfigurationError with the number of the first wrong line.
    """
    lines = _lines(path)
    if not lines:
        raise ConfigurationError(f"{path} is empty: it needs one line of JSON for each page or pair")
    pairs = lines[0].id is None
    for number, line in enumerate(lines, 1):
        complete = (line.a and line.b and line.label) if pairs else line.id
        if not complete:
            needs = "a, b and label" if pairs else "an id"
            raise ConfigurationError(f"{path}, line {number}: needs {needs}, like the first line")
    return _pairs(lines) if pairs else _pages(lines)


def _lines(path: Path) -> list[_Line]:
    decoder = msgspec.json.Decoder(_Line)
    decoded = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            decoded += [decoder.decode(line)] if line.strip() else []
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path}, line {number}: {error}") from error
    return decoded


def _pages(lines: Sequence[_Line]) -> list[TruthRow]:
    parents = {line.id: line.duplicate_of for line in lines if line.id is not None}
    return [_page(line, line.group or _root(line.id or "", parents)) for line in lines]


def _page(line: _Line, group: str) -> TruthRow:
    operator, strength = line.operator or "page", line.strength
    recrawl = operator.startswith(RECRAWL)
    positive = None if recrawl or strength in LEFT_OUT else line.duplicate_of is not None
    if positive:
        strata = (*((f"strength {strength}",) if strength else ()), f"operator {operator}")
    elif positive is None and not recrawl:
        strata = (f"strength {strength}", f"operator {operator}")
    else:
        strata = (operator,)
    return TruthRow(line.id or "", group, positive, strata)


def _root(page: str, parents: dict[str, str | None]) -> str:
    """Return the first page of the chain of duplicates that `page` is in."""
    seen = {page}
    while (parent := parents.get(page)) is not None and parent not in seen:
        page = parent
        seen.add(page)
    return page


def _pairs(lines: Sequence[_Line]) -> list[LabelledPair]:
    components = _Components()
    for line in lines:
        components.join(line.a or "", line.b or "")
    labels = {"dup": True, "not": False}
    return [
        LabelledPair(
            line.a or "",
            line.b or "",
            labels.get(line.label or ""),
            components.find(line.a or ""),
            tuple(f"{name} {value}" for name, value in (("kind", line.kind), ("lang", line.lang)) if value),
        )
        for line in lines
    ]


class _Components:
    """Union-find: the connected components of pages joined by pairs, each named by its smallest id."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def find(self, page: str) -> str:
        """Return the name of the component of `page`."""
        while (parent := self._parents.setdefault(page, page)) != page:
            self._parents[page] = page = self._parents[parent]
        return page

    def join(self, one: str, other: str) -> None:
        """Unite the components of two pages."""
        smaller, larger = sorted((self.find(one), self.find(other)))
        self._parents[larger] = smaller
