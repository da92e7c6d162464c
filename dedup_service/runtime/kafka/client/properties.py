"""Java's properties format, read exactly as `java.util.Properties.load` reads it.

A file of client options is shared with Java's own tools, so each character must mean the same to both:

- A natural line ends with LF, CR or CR LF, and nothing else. It is a comment if its first character that is
  not white space is # or !; comments never continue.
- A line that ends with an odd number of backslashes continues; the white space that the next line begins
  with is dropped, and a # there is no comment.
- The name ends at the first =, : or white space without a backslash before it. White space around the
  separator is dropped, that at the end of the value is kept.
- Escapes: tab, line feed, carriage return and form feed as `t n r f`, UTF-16 units as `uXXXX`; a backslash
  before any other character only disappears.

White space is space, tab and form feed. One difference: where the text ends with a lone backslash, Java may
add an empty name; here it is a blank line. Why our own: a password read wrongly must be noticed, so each entry
needs its line number and whether it has a separator, and the packages for the format give neither. A test
compares with what Java made of the same texts.
Source: the API documentation of `java.util.Properties.load(Reader)`, Java 17.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BLANK = " \t\f"
_ENDS = re.compile(r"\r\n|\r|\n")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True)
class PropertyLine:
    """A name and its value. line: where it begins, from 1. separated: a separator follows the name."""

    line: int
    name: str
    value: str
    separated: bool

    def __repr__(self) -> str:
        return f"PropertyLine({self.line}, {self.name!r}, …)"  # the value may be a password


class PropertiesError(ValueError):
    """A line has an escape that Java refuses, or half a character. `line`: its number, from 1."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


def parse(text: str) -> Iterator[PropertyLine]:
    r"""Yield the entries of a properties text in their order, repeated names included.

    Raises PropertiesError.
    >>> [(entry.name, entry.value) for entry in parse("a = 1\\\n   2\n# no\nb c\\u0021\\\\\nd=")]
    [('a', '12'), ('b', 'c!\\'), ('d', '')]
    """
    for line, content in _logical_lines(text):
        end = _end_of_name(content)
        rest = content[end:].lstrip(_BLANK)
        if rest[:1] in {"=", ":"}:
            rest = rest[1:].lstrip(_BLANK)
        yield PropertyLine(line, _unescaped(content[:end], line), _unescaped(rest, line), separated=end < len(content))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each logical line with the number of its first natural line; no comments, no blank lines."""
    content, first, continues = "", 0, False
    for number, natural in enumerate((line.lstrip(_BLANK) for line in _ENDS.split(text)), 1):
        if not continues:
            if not natural or natural[0] in "#!":
                continue
            content, first = "", number
        ends_escaped = (len(natural) - len(natural.rstrip("\\"))) % 2 == 1
        content += natural[:-1] if ends_escaped else natural
        continues = ends_escaped and bool(content)  # Java, too, takes a lone backslash for a blank line
        if content and not continues:
            yield first, content
    if continues:
        yield first, content


def _end_of_name(content: str) -> int:
    """Return where the name ends: the first separator without a backslash before it."""
    escaped = False
    for at, character in enumerate(content):
        if not escaped and (character in "=:" or character in _BLANK):
            return at
        escaped = character == "\\" and not escaped
    return len(content)


def _unescaped(text: str, line: int) -> str:
    def character(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        if found[2] == "u":
            raise PropertiesError(line, r"\u must be followed by four hexadecimal digits")
        return _CONTROL.get(found[2], found[2])

    units = _ESCAPE.sub(character, text)
    try:
        return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeDecodeError:
        raise PropertiesError(line, r"a \u escape is half a character: write both halves of the pair") from None
