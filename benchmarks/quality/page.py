"""Write tables into a Markdown page, each between its markers.

<!-- name -->
… replaced …
<!-- end -->
"""

import re
from collections.abc import Mapping

_BLOCK = re.compile(r"<!-- (?P<name>[a-z0-9-]+) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)
_MARK = re.compile(r"<!-- [a-z0-9-]+ -->")


def replaced(page: str, tables: Mapping[str, str]) -> str:
    """Return `page` with each table between the markers of its name; blocks without a table stay unchanged.

    Raises ValueError if a marker is not closed, or if the page has no markers for a table.
    """
    if missing := tables.keys() - set(names_in(page)):
        message = f"the page has no markers for {', '.join(sorted(missing))}: add <!-- name --> and <!-- end -->"
        raise ValueError(message)

    def block(match: re.Match[str]) -> str:
        table = tables.get(match["name"])
        return match[0] if table is None else f"<!-- {match['name']} -->\n{table.strip()}\n<!-- end -->"

    return _BLOCK.sub(block, page)


def names_in(page: str) -> list[str]:
    """Return the names of the blocks in order; ValueError for markers without a pair or names used twice."""
    marks = [mark.removeprefix("<!-- ").removesuffix(" -->") for mark in _MARK.findall(page)]
    names, ends = marks[::2], marks[1::2]
    if len(names) != len(ends) or "end" in names or set(ends) - {"end"}:
        message = f"markers are not paired: {' '.join(marks)}"
        raise ValueError(message)
    if len(set(names)) < len(names):
        message = f"a marker name is used twice: {' '.join(sorted(names))}"
        raise ValueError(message)
    return names
