"""Columns of a data set by other names than ours: `text=content,url=metadata.warc_url`.

A name with points is looked for as it is, and then as a path through objects (`metadata.warc_url`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import msgspec

from dedup_service.core.errors import ConfigurationError


class NamesJson(msgspec.Struct, frozen=True):
    """The names in a line; all else is skipped, without memory for it."""

    url: str
    id: str | int | float | None = None

    @property
    def name(self) -> str:
        """The `id` as text, the URL if there is none."""
        return self.url if self.id is None else str(self.id) or self.url


class PageJson(NamesJson, frozen=True):
    """The known keys of a line, and their types."""

    title: str | None = None
    text: str | None = None
    html: str | None = None
    lang: str | None = None
    keywords: list[str] | None = None
    tags: list[str] | None = None
    references: list[str] | None = None
    date: str | None = None
    site_name: str | None = None
    text_percent: float | None = None
    canonical_url: str | None = None


COLUMNS = PageJson.__struct_fields__
"""What a page may have, under our names, which are also those of the keys of a line of JSON."""


COLUMNS_OPTION = "--columns text=content,url=address"


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of an input's columns: pairs of ours and theirs. A column that is not among them has our name."""

    names: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the columns that `text` names: `ours=theirs`, with commas between; ConfigurationError if it does not.

        >>> Columns.parse("text=content,url=warc_url").names
        (('text', 'content'), ('url', 'warc_url'))
        """
        names: dict[str, str] = {}
        for part in text.split(","):
            ours, equals, theirs = part.partition("=")
            ours, theirs = ours.strip(), theirs.strip()
            if not equals or not theirs or ours not in COLUMNS:
                raise ConfigurationError(
                    f"{part.strip()!r} names no column: write ours=theirs, as text=content, with one of ours: "
                    + ", ".join(COLUMNS)
                )
            if ours in names:
                raise ConfigurationError(f"the column {ours!r} is named twice: leave one out")
            names[ours] = theirs
        return cls(tuple(names.items()))

    def of(self, ours: str) -> str:
        """Return the name of a column in the input."""
        return dict(self.names).get(ours, ours)

    def among(
        self, names: Sequence[str], table: str, how: str, has: Callable[[str], bool] | None = None
    ) -> dict[str, str]:
        """Return the names of those columns that a table has, by ours.

        names: of its columns. table: its name, for messages; how: how its columns are given other names. has: whether
        it has a column, or something at a path; None: whether it is among the names.
        ConfigurationError if it has no column for `url`, or none for the content, or two of one name.
        """
        has = has or names.__contains__
        found = {ours: theirs for ours in COLUMNS if has(theirs := self.of(ours))}
        missing = [ours for ours, theirs in self.names if ours not in found]
        if missing or "url" not in found or not {"text", "html"} & set(found):
            what = self.of(missing[0]) if missing else "url" if "url" not in found else "text"
            raise ConfigurationError(f"{table} has no column {what!r}, it has {', '.join(names)}: name them, as {how}")
        twice = next((theirs for theirs in found.values() if names.count(theirs) > 1), None)
        if twice is not None:
            raise ConfigurationError(f"{table} has two columns {twice!r}: rename one, or name others, as {how}")
        return found

    def pick(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a row under our names; those that it does not have are left out.

        >>> Columns.parse("url=metadata.url").pick({"text": "A text", "metadata": {"url": "https://a.example/"}})
        {'url': 'https://a.example/', 'text': 'A text'}
        """
        picked: dict[str, Any] = {}
        renamed = dict(self.names)
        for ours in COLUMNS:
            found, value = _value_at(row, renamed.get(ours, ours))
            if found:
                picked[ours] = value
        return picked


def _value_at(row: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    """Return whether a row has a value of this name, or at this path, and the value."""
    if name in row:
        return True, row[name]
    first, point, rest = name.partition(".")
    inner = row.get(first)
    return _value_at(inner, rest) if point and isinstance(inner, Mapping) else (False, None)
