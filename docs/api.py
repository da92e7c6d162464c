"""The parts of docs/api.md: public names with their signatures and docstrings.

Griffe reads the sources and cuts docstrings in the style of Google into sections.
"""

import textwrap
from collections.abc import Iterator
from functools import cache
from typing import Any

import griffe

WIDTH = 96
"""Of a signature in one line."""

HIDDEN = {"MatchRow.holds"}
"""Methods that the filter itself calls."""


@cache
def _package() -> Any:
    """Return what Griffe knows of the package: an object of its own for each name, by what the name is."""
    return griffe.load(
        "dedup_service",
        docstring_parser=griffe.Parser.google,
        docstring_options={"returns_multiple_items": False},
        resolve_aliases=True,
    )


def names(part: str) -> str:
    """Return what the page says of the names in `part`, which have commas between them."""
    return "\n".join(f"### {name}\n\n{_described(name, _package()[name])}" for name in part.split(", "))


def _described(name: str, one: Any) -> str:
    paragraphs = [*_signature(name, one), *_sections(one)]
    for member_name, member in one.members.items():
        full = f"{name}.{member_name}"
        if not member_name.startswith("_") and full not in HIDDEN and member.has_docstring and one.is_class:
            paragraphs.append(f"#### {full}\n\n{_described(full, member).rstrip()}")
    return "\n\n".join(paragraphs) + "\n"


def _signature(name: str, one: Any) -> Iterator[str]:
    """Yield the signature of a function, of a class with fields, or the type of a property, as a block of code."""
    if one.is_function:
        text = _called(name, one.parameters) + f" -> {one.annotation}"
    elif one.is_class and "dataclass" in one.labels:
        text = _called(name, one.parameters)
    elif one.is_class:
        text = f"class {name}({', '.join(map(str, one.bases))})" if one.bases else ""
    else:
        text = f"{name}: {one.annotation}" if one.annotation else ""
    if text:
        yield f"```python\n{text}\n```"


def _called(name: str, parameters: griffe.Parameters) -> str:
    written: list[str] = []
    keyword_only = griffe.ParameterKind.keyword_only
    for one in parameters:
        if one.name in {"self", "cls"}:
            continue
        if one.kind is keyword_only and "*" not in written and not any(text.startswith("*") for text in written):
            written.append("*")
        stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(one.kind, "")
        has_default = one.default is not None and not stars
        written.append(f"{stars}{one.name}: {one.annotation}" + (f" = {one.default}" if has_default else ""))
    line = f"{name}({', '.join(written)})"
    return line if len(line) <= WIDTH else f"{name}(\n" + "".join(f"    {text},\n" for text in written) + ")"


def _sections(one: Any) -> Iterator[str]:
    """Yield the sections of a docstring as Markdown."""
    for section in one.docstring.parsed if one.docstring else ():
        kind, value = section.kind.value, section.value
        if kind == "text":
            yield value
        elif kind == "examples":
            yield _code(value[0][1])
        elif kind == "admonition":
            yield f"{section.title}:\n\n{_code(value.description)}"
        else:
            yield f"{kind.capitalize()}:\n\n" + "\n".join(map(_item, value))


def _code(text: str) -> str:
    return text if text.startswith("```") else f"```python\n{text}\n```"


def _item(one: griffe.DocstringElement) -> str:
    name = getattr(one, "name", "") or str(one.annotation or "")
    text = f"- `{name}`: {one.description}" if name else f"- {one.description}"
    return textwrap.fill(" ".join(text.split()), 115, subsequent_indent="  ", break_on_hyphens=False)
