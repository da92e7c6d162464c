"""Read the subset of XPath in which trafilatura selects elements, as conditions in Python.

An expression is a union of paths `.//name[predicate]…`, `.//name[predicate]…[1]` or `(.//name[predicate]…)[1]`, with
predicates of `or`, `not`, `self::name`, `.//name`, `@name`, `@name='…'`, `contains`, `starts-with`, `translate` and
`re:test`. All else is a ValueError.

Source: XPath 1.0, 2.4 (predicates) and 4.2 (the string of `@a|@b` is that of the one that the page has first);
EXSLT regular expressions, as lxml has them (`re.search`).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from lxml.html import HtmlElement


class Choice(Enum):
    """Which of the elements that fulfil its predicates a path selects."""

    ALL = "all"
    FIRST_OF_PARENT = "first of its parent"
    FIRST = "first of the tree"


Test = Callable[[HtmlElement], bool]
Hint = tuple[str, str]
"""Name of an attribute, and a regular expression that its value contains."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate or a part of one.

    Attributes:
        holds: Whether it is true of an element.
        hints: At least one of them is true of an element of which the condition is true; None if that is not known.
        is_inner: Whether it depends on what is inside the element.
    """

    holds: Test
    hints: tuple[Hint, ...] | None = None
    is_inner: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """A member of a union.

    Attributes:
        names: Of elements; empty if it is for all.
        own: Conditions on the name and attributes of an element.
        inner: Conditions on what is inside it.
        choice: Which of these elements are selected.
    """

    names: frozenset[str]
    own: tuple[Condition, ...]
    inner: tuple[Condition, ...]
    choice: Choice

    @property
    def hints(self) -> tuple[Hint, ...] | None:
        """At least one of them is true of each selected element; None if elements may need no attribute."""
        return next((each.hints for each in (*self.own, *self.inner) if each.hints is not None), None)

    @property
    def is_by_name(self) -> bool:
        """Whether no attribute matters."""
        return not self.own and not self.inner

    def fits(self, element: HtmlElement) -> bool:
        """Whether the name and attributes of an element are right."""
        return (not self.names or element.tag in self.names) and all(each.holds(element) for each in self.own)


def paths_of(expression: str) -> tuple[Path, ...]:
    """Return the union that an expression is.

    Raises:
        ValueError: It is not in the subset.
    """
    return _Parser(expression).union()


_TOKEN = re.compile(r"""\s*(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<other>\.//|[][()|,=@*]|[\w:-]+))""")
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_NOT_JOINABLE = re.compile(r"\(\?[a-zA-Z]|\(\?P|\\[1-9]")
"""Flags, names and numbers of groups, which would mean something else in a longer expression."""


class _Parser:
    """Recursive descent over the tokens of an expression."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, bool]] = []  # and whether it is a literal
        text, at = text.strip(), 0
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:
                raise ValueError(f"not understood: {text[at : at + 20]}")
            self._tokens.append((token[token.lastgroup or 0], token.lastgroup != "other"))
            at = token.end()
        self._tokens.append(("", False))
        self._at = 0

    def union(self) -> tuple[Path, ...]:
        paths = [self._path()]
        while self._skip("|"):
            paths.append(self._path())
        self._expect("")
        return tuple(paths)

    def _path(self) -> Path:
        is_grouped = self._skip("(")
        self._expect(".//")
        names = set[str]() if self._skip("*") else {self._name()}
        conditions, choice = list[Condition](), Choice.ALL
        while choice is Choice.ALL and self._skip("["):
            if self._skip("1"):
                choice = Choice.FIRST_OF_PARENT
            elif not names and not conditions and (alternatives := self._names_of_self()):
                names = alternatives
            else:
                conditions.append(self._any())
            self._expect("]")
        if is_grouped:
            for token in ")", "[", "1", "]":
                self._expect(token)
            if choice is not Choice.ALL:
                raise ValueError("two positions")
            choice = Choice.FIRST
        own = tuple(each for each in conditions if not each.is_inner)
        return Path(frozenset(names), own, tuple(each for each in conditions if each.is_inner), choice)

    def _names_of_self(self) -> set[str]:
        """Read `self::name or …`, or nothing if the predicate has anything else."""
        begin, names = self._at, set[str]()
        while (word := self._tokens[self._at][0]).startswith("self::"):
            names.add(word.removeprefix("self::"))
            self._at += 1
            if self._tokens[self._at] == ("]", False):
                return names
            if not self._skip("or"):
                break
        self._at = begin
        return set()

    def _any(self) -> Condition:
        """Read conditions joined by `or`."""
        parts = [self._condition()]
        while self._skip("or"):
            parts.append(self._condition())
        if len(parts) == 1:
            return parts[0]
        hints = [part.hints for part in parts if part.hints is not None]
        return Condition(
            lambda element: any(part.holds(element) for part in parts),
            tuple(hint for each in hints for hint in each) if len(hints) == len(parts) else None,
            any(part.is_inner for part in parts),
        )

    def _condition(self) -> Condition:
        word = self._word()
        if word.startswith("self::"):
            name = word.removeprefix("self::")
            return Condition(lambda element: bool(element.tag == name))
        if word == ".//":
            inside = ".//" + self._name()
            return Condition(lambda element: element.find(inside) is not None, is_inner=True)
        if word == "@":
            return self._attribute(self._name())
        self._expect("(")
        if word == "not":
            negated = self._any()
            self._expect(")")
            return Condition(lambda element: not negated.holds(element), is_inner=negated.is_inner)
        names, changes = self._value()
        self._expect(",")
        condition = self._of_text(word, names, changes, self._literal())
        self._expect(")")
        return condition

    def _attribute(self, name: str) -> Condition:
        if self._skip("="):
            literal = self._literal()
            return Condition(lambda element: element.get(name) == literal, ((name, rf"\A{re.escape(literal)}\Z"),))
        return Condition(lambda element: element.get(name) is not None, ((name, ""),))

    def _of_text(self, function: str, names: list[str], changes: dict[int, int], literal: str) -> Condition:
        """Return the condition of a function of an attribute, or of the first of several; empty if there is none.

        changes: characters to translate.
        """
        if function in ("contains", "starts-with"):
            # The literal in any spelling that is translated to it.
            classes = ({char, *(chr(old) for old, new in changes.items() if chr(new) == char)} for char in literal)
            pattern = "".join(f"(?:{'|'.join(map(re.escape, sorted(chars)))})" for chars in classes)
            if any(char in map(chr, changes) for char in literal):
                raise ValueError(f"never: {literal}")
            pattern = r"\A" * (function == "starts-with") + pattern
        elif function == "re:test":
            pattern = literal
            if self._skip(",") and "i" in self._literal():
                pattern = f"(?i:{literal})"
            if changes or _NOT_JOINABLE.search(literal):
                raise ValueError(f"not understood: {literal}")
        else:
            raise ValueError(f"not understood: {function}")
        try:
            search = re.compile(pattern).search
        except re.error as error:
            raise ValueError(literal) from error
        if len(names) == 1:
            name = names[0]
            test: Test = lambda element: search(element.get(name, "")) is not None  # noqa: E731
        else:
            test = lambda element: search(_first(element, names)) is not None  # noqa: E731
        return Condition(test, None if search("") else tuple((name, pattern) for name in names))

    def _value(self) -> tuple[list[str], dict[int, int]]:
        """Read `@a|@b` or `translate(@a|@b, 'XY', 'xy')`: the names and the characters to translate."""
        if self._skip("translate"):
            self._expect("(")
            names, changes = self._value()
            if changes:
                raise ValueError("translated twice")
            self._expect(",")
            before = self._literal()
            self._expect(",")
            changes = str.maketrans(before, self._literal())
            self._expect(")")
            return names, changes
        self._expect("@")
        names = [self._name()]
        while self._skip("|"):
            self._expect("@")
            names.append(self._name())
        return names, {}

    def _word(self) -> str:
        word, is_literal = self._tokens[self._at]
        if is_literal or not word:
            raise ValueError(f"a word expected, not {word!r}")
        self._at += 1
        return word

    def _name(self) -> str:
        word = self._word()
        if not _NAME.fullmatch(word):
            raise ValueError(f"a name expected, not {word!r}")
        return word

    def _literal(self) -> str:
        word, is_literal = self._tokens[self._at]
        if not is_literal:
            raise ValueError(f"a literal expected, not {word!r}")
        self._at += 1
        return word

    def _skip(self, word: str) -> bool:
        """Skip the next token if it is this word; say whether it is."""
        is_found = self._tokens[self._at] == (word, False)
        if is_found and word:
            self._at += 1
        return is_found

    def _expect(self, word: str) -> None:
        if not self._skip(word):
            raise ValueError(f"{word!r} expected, not {self._tokens[self._at][0]!r}")


def _first(element: HtmlElement, names: list[str]) -> str:
    """Return the value of the attribute that an element has first among these; empty if it has none."""
    return next((value for name, value in element.items() if name in names), "")
