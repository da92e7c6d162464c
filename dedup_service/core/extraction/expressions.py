"""Evaluate trafilatura's XPath expressions by a look-up for each element, with the same result.

trafilatura selects elements by their attributes: `.//*[self::div or …][@id='story' or re:test(@class, '…')]`.
libxml2 calls Python for each `re:test` of each element, also if the element has no such attribute: half of
trafilatura's time. But most predicates depend on the name and attributes of the element alone, and elements, pages and
sites repeat these. So an `ExpressionTable` remembers by name and attributes which predicates hold. Before a page is
given to trafilatura, the table finds out which expressions can select anything in it, and removes the attributes that
nothing depends on; after that, most expressions need not look at the page at all.

The expressions are read as lxml has them (`xpath_subset`); nothing of trafilatura is copied here. An expression that
is not understood stays an `etree.XPath`, so a later trafilatura may be slower, but selects the same.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from lxml import etree
from lxml.html import HtmlElement

from dedup_service.core.extraction.xpath_subset import Choice, Hint, Path, paths_of

MAX_REMEMBERED = 10_000
MAX_REMEMBERED_CHARS = 300
"""Elements with more characters of attributes are evaluated each time; a page could fill the memory with them."""

ALL = -1
_WITH_ATTRIBUTES = "descendant::*/@*/.."  # in document order, each once
_with_attributes = etree.XPath(_WITH_ATTRIBUTES)


class ExpressionTable:
    """Expressions, and what is known of elements by their attributes. Bit i stands for path i of all expressions."""

    def __init__(self, reads: Callable[[str, str], bool]) -> None:
        """Begin without expressions.

        reads: whether anything beside the expressions reads an attribute with this name and value.
        """
        self._reads = reads
        self._paths: list[Path] = []
        self._hints: list[dict[str, re.Pattern[str]]] = []
        self._all_hints: dict[str, re.Pattern[str]] = {}
        self._is_complete = True
        self._by_name = self._always_used = 0
        self._bits: dict[tuple[object, ...], int] = {}
        self._uses: dict[tuple[tuple[str, str], ...], tuple[int, bool]] = {}
        self.possible: ContextVar[int] = ContextVar("possible", default=ALL)
        """Bits of the paths that may select an element of the page in work for its attributes; of each thread."""

    def add(self, expression: etree.XPath) -> "Expression | etree.XPath":
        """Return an expression that selects the same, in document order; the same one if it is not understood."""
        try:
            paths = paths_of(expression.path)
        except ValueError:
            self._is_complete = False
            return expression
        first = len(self._paths)
        self._paths += paths
        self._hints += (_joined(path.hints or ()) for path in paths)
        self._all_hints = _joined(hint for path in self._paths for hint in path.hints or ())
        for row, path in enumerate(paths, first):
            if path.hints is None:
                self._by_name |= 1 << row
                self._always_used |= (not path.is_by_name) << row
        self._bits.clear()
        self._uses.clear()
        return Expression.of(self, paths, first)

    def prepare(self, root: HtmlElement) -> None:
        """Remove unread attributes inside a tree, and restrict the expressions to what its elements allow.

        The restriction is the thread's, until the next tree: no expression may be given another tree meanwhile.
        """
        self.possible.set(ALL)
        possible = 0
        for element in _with_attributes(root):
            paths, is_read = self._use(element)
            possible |= paths
            if not paths and not is_read:
                element.attrib.clear()
        self.possible.set(possible)

    def bits(self, element: HtmlElement) -> int:
        """Return for which paths the name and attributes of an element are right."""
        items = element.items()
        key = (element.tag, *items)
        bits = self._bits.get(key)
        if bits is None:
            possible = self._use(element)[0] | self._by_name
            bits = sum(path.fits(element) << row for row, path in enumerate(self._paths) if possible >> row & 1)
            _remember(self._bits, key, bits, items)
        return bits

    def _use(self, element: HtmlElement) -> tuple[int, bool]:
        """Return the paths that may depend on an element's attributes, whatever its name, and whether others do."""
        items = tuple(element.items())
        use = self._uses.get(items)
        if use is None:
            is_read = not self._is_complete or any(self._reads(name, value) for name, value in items)
            use = self._always_used, is_read
            if _any_found(self._all_hints, items):
                use = (
                    sum(_any_found(hints, items) << row for row, hints in enumerate(self._hints)) | self._always_used,
                    is_read,
                )
            _remember(self._uses, items, use, items)
        return use


def _joined(hints: Iterable[Hint]) -> dict[str, re.Pattern[str]]:
    """Return for each name of an attribute one regular expression that finds what any of the hints finds."""
    patterns: dict[str, dict[str, None]] = {}
    for name, pattern in hints:
        patterns.setdefault(name, {})[pattern] = None
    return {name: re.compile("|".join(each)) for name, each in patterns.items()}


def _any_found(hints: dict[str, re.Pattern[str]], items: Iterable[tuple[str, str]]) -> bool:
    return any(name in hints and hints[name].search(value) is not None for name, value in items)


def _remember(known: dict[Any, Any], key: Any, value: Any, items: Iterable[tuple[str, str]]) -> None:
    if sum(len(name) + len(value) for name, value in items) <= MAX_REMEMBERED_CHARS:
        if len(known) >= MAX_REMEMBERED:
            known.clear()
        known[key] = value


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression of a table, called as an `etree.XPath` is.

    Attributes:
        table: Where its paths are.
        paths: The members of the union.
        first: Row of the first of them in the table.
        by_name: Bits of those that may select elements without attributes.
        named: Selects the elements that these may select.
        candidates: Selects the elements that any may select.
    """

    table: ExpressionTable
    paths: tuple[Path, ...]
    first: int
    by_name: int
    named: etree.XPath
    candidates: etree.XPath

    @classmethod
    def of(cls, table: ExpressionTable, paths: tuple[Path, ...], first: int) -> "Expression":
        """Return the expression of some paths of a table."""
        by_name = [row for row, path in enumerate(paths) if path.hints is None]
        names = {name for row in by_name for name in paths[row].names or ("*",)}
        named = "|".join(f"descendant::{name}" for name in (("*",) if "*" in names else sorted(names)))
        every = "descendant::*" if "*" in names else "|".join(filter(None, (named, _WITH_ATTRIBUTES)))
        bits = sum(1 << first + row for row in by_name)
        return cls(table, paths, first, bits, etree.XPath(named or every), etree.XPath(every))

    def __call__(self, tree: HtmlElement) -> list[HtmlElement]:
        """Return the selected elements inside a tree, in document order."""
        own = (1 << len(self.paths)) - 1 << self.first
        mask = own & (self.table.possible.get() | self.by_name)
        if not mask:
            return []
        bits_of = self.table.bits
        candidates = self.candidates if mask & ~self.by_name else self.named
        fitting = [element for element in candidates(tree) if bits_of(element) & mask]
        return list(self._selected(fitting)) if fitting else fitting

    def _selected(self, fitting: Sequence[HtmlElement]) -> Iterator[HtmlElement]:
        """Yield the elements that at least one path selects."""
        seen: set[tuple[int, HtmlElement | None]] = set()
        for element in fitting:
            bits = self.table.bits(element) >> self.first
            selected = False
            for row, path in enumerate(self.paths):
                if not bits >> row & 1 or not all(each.holds(element) for each in path.inner):
                    continue
                place = (row, element.getparent() if path.choice is Choice.FIRST_OF_PARENT else None)
                selected |= path.choice is Choice.ALL or place not in seen
                seen.add(place)
            if selected:
                yield element
