"""An explanation on a terminal: what was decided and by what, both pages side by side, and the numbers behind it."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dedup_service.core.explain.pair import PairView
from dedup_service.core.page import Page
from dedup_service.interfaces.cli.support.side_by_side import show_pair
from dedup_service.interfaces.explain_json import explanation_values
from dedup_service.interfaces.terminal_safe import terminal_safe
from dedup_service.runtime.explain import Explanation, KnownPage

__all__ = ["show_explanation"]

DECIDED = {
    "row": "a row of the rule table",
    "distance": "distance",
    "person": "a person",
    "guard": "a guard, which did not believe the match",
    "address": "an earlier visit of the address",
    "nothing": "nothing: no row held for any page",
    "unjudged": "nothing: it could not be judged",
    "unknown": "what is known no longer",
}
WORDS = 12


def show_explanation(console: Console, found: Explanation) -> None:
    """Print `found`."""
    values = explanation_values(found)
    _summary(console, values)
    match = found.match
    if match is not None:
        if found.text is not None and match.text is not None:
            show_pair(console, "the page, and the other", _page(found.page, found.text), _page(match.other, match.text))
        _pair(console, values["match"])
    if found.neighbours:
        _neighbours(console, values["neighbours"], [neighbour.view for neighbour in found.neighbours])
    if values["corrections"]:
        _corrections(console, values["corrections"])
    for note in values["notes"]:
        console.print(Text(f"note: {terminal_safe(note)}"), style="dim")


def _summary(console: Console, values: dict[str, Any]) -> None:
    page, verdict = values["page"], values["verdict"]
    table = Table(show_header=False, box=None)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    said = "unknown" if verdict is None else verdict["kind"]
    if verdict is not None and verdict["of_url"]:
        said += f" of {verdict['of_url']} (sequence {verdict['of']})"
    rows = [
        ("page", f"{page['url']} (sequence {page['sequence']}, {page['id']})"),
        ("title", page["title"]),
        ("verdict", said),
        ("reason", (verdict or {}).get("reason") or "none"),
        ("decided by", DECIDED[values["decided_by"]]),
        ("kept now", "yes: later pages are compared with it" if page["kept"] else "no"),
        ("text", f"{page['letters']:,} letters, {page['sentences']} sentences, {page['numbers']} numbers"),
        ("space", values["space"]),
        ("rule", f"{values['policy']['text']} (since record {values['policy']['since']})"),
    ]
    for name, value in rows:
        table.add_row(name, Text(terminal_safe(str(value))))
    console.print(table)


def _pair(console: Console, pair: dict[str, Any]) -> None:
    why = f"matches by {pair['row']!r}" if pair["matches"] else f"does not match: {pair['why_not']}"
    console.print(Text(terminal_safe(f"{pair['other']['url']} {why}"), style="bold"))
    if pair["judged"]:
        console.print(Text(f"a person said: {pair['judged']}, which stands above the rule"))
    _channels(console, pair)
    _rows(console, pair["rows"])
    if pair["features"] is not None:
        _features(console, pair["features"])


def _channels(console: Console, pair: dict[str, Any]) -> None:
    columns = ("channel", "page", "other", "distance", "radius", "differing bits", "equal blocks", "found in")
    table = _table("fingerprints and index", columns)
    for at in pair["channels"]:
        equal = ", ".join(str(block["block"]) for block in at["blocks"] if not block["differing"])
        found = "no index" if at["radius"] is None else f"table {at['table']}" if at["found"] else "not found"
        row = (at["channel"], at["one"], at["other"], at["distance"], at["radius"], _list(at["bits"]), equal, found)
        table.add_row(*map(_cell, row))
    keys = pair["keys"]
    if keys["used"]:
        shared = f"{len(keys['shared'])} of {keys['one']} and {keys['other']} shared"
        table.add_row("keys", _cell(shared), "", "", "", _cell(_list(keys["shared"])), "", "")
    console.print(table)


def _rows(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    table = _table("the rule, row by row", ("row", "holds", "bounds"))
    for row in rows:
        bounds = Text()
        for bound in row["bounds"]:
            sign = "≥" if bound["asks"] == "at least" else "≤"
            text = f"{bound['quantity']} {_cell(bound['value'])} {sign} {bound['bound']:g}"
            bounds.append(("" if not bounds else ", ") + (text if bound["holds"] else f"[no: {text}]"))
        says = "decides" if row["decides"] else "yes" if row["holds"] else "no"
        table.add_row(Text(terminal_safe(row["name"])), says, bounds)
    console.print(table)


def _features(console: Console, features: dict[str, Any]) -> None:
    table = _table("heaviest words", ("word", "in", "weight", "count", "idf", "factors"))
    for both in features["shared"][:WORDS]:
        table.add_row(*_feature(both["word"], "both", both["one"]))
    for side, name in (("one", "the page"), ("other", "the other")):
        for alone in features[side][:WORDS]:
            table.add_row(*_feature(alone["word"], name, alone["weight"]))
    console.print(table)


def _feature(word: str, where: str, weight: dict[str, Any]) -> tuple[Text, ...]:
    factors = ", ".join(f"{name} {value:g}" for name, value in weight["factors"].items() if value != 1)
    row = (terminal_safe(word), where, f"{weight['weight']:.2f}", weight["count"], f"{weight['idf']:.2f}", factors)
    return tuple(Text(_cell(value)) for value in row)


def _neighbours(console: Console, pairs: Sequence[dict[str, Any]], views: Sequence[PairView]) -> None:
    table = _table(
        "nearest pages that are kept", ("page", "shingles in common", "words", "body", "found by", "why not")
    )
    for pair, view in zip(pairs, views, strict=True):
        distance = {at["channel"]: at["distance"] for at in pair["channels"]}
        why = "a person said they are apart" if pair["judged"] == "apart" and pair["matches"] else pair["why_not"]
        row = (
            f"{pair['other']['url']} {pair['other']['title']}",
            f"{view.similarity.jaccard:.2f}",
            distance["words"],
            distance["body"],
            _list(pair["found_by"]) or "nothing",
            why or f"it does: {pair['row']}",
        )
        table.add_row(*(Text(terminal_safe(_cell(value))) for value in row))
    console.print(table)


def _corrections(console: Console, corrections: Iterable[dict[str, Any]]) -> None:
    for at in corrections:
        verb = "is a duplicate" if at["duplicate"] else "is no duplicate"
        by = f" by {at['by']}" if at["by"] else ""
        text = f"correction {at['sequence']}{by}: {at['url']} {verb} of {at['of']} ({at['reason']})"
        console.print(Text(terminal_safe(text)))


def _table(title: str, columns: Iterable[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _page(page: KnownPage, text: str) -> Page:
    return Page(url=page.url, canonical_url=page.canonical_url, id=page.id, title=page.title, text=text)


def _list(values: Iterable[Any]) -> str:
    return ", ".join(map(str, values))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
