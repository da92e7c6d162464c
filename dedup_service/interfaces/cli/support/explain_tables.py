"""Print an explanation on a terminal: the verdict, both pages side by side, and every measured value."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.bar import Bar
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dedup_service.core.explain.pair import PairView
from dedup_service.core.page import Page
from dedup_service.interfaces.cli.support.side_by_side import show_pair
from dedup_service.interfaces.explain_json import explanation_to_dict
from dedup_service.interfaces.terminal_safe import terminal_safe
from dedup_service.runtime.explain.explainer import Explanation
from dedup_service.runtime.explain.page_source import KnownPage

DECIDED_BY = {
    "text": "the same text",
    "row": "a row of the rule table",
    "distance": "the Hamming distance",
    "person": "a person",
    "guard": "a guard, which did not accept the match",
    "address": "an earlier visit of the URL, or of the one that it names as canonical",
    "nothing": "nothing: no row of the rule held for any page",
    "unjudged": "nothing: the page could not be judged",
    "unknown": "unknown: the log no longer has it",
}
MAX_WORDS = 12
"""Words shown of each list: shared, and of one page alone."""
BAR = 20
"""Width of a bar in characters: to the left of its middle against a match, to the right for one."""


def show_explanation(console: Console, explanation: Explanation) -> None:
    """Print `explanation`, with the texts side by side if both are known."""
    values = explanation_to_dict(explanation)
    _summary(console, values)
    match = explanation.match
    if match is not None:
        if explanation.text is not None and match.text is not None:
            left, right = _page(explanation.page, explanation.text), _page(match.other, match.text)
            show_pair(console, "the page, and the other page", left, right, match.host_spans)
        _pair(console, values["match"])
    if explanation.neighbours:
        _neighbours(console, values["neighbours"], [neighbour.view for neighbour in explanation.neighbours])
    if values["corrections"]:
        _corrections(console, values["corrections"])
    for note in values["notes"]:
        console.print(Text(f"note: {terminal_safe(note)}"), style="dim")


def _summary(console: Console, values: dict[str, Any]) -> None:
    page, verdict = values["page"], values["verdict"]
    table = Table(show_header=False, box=None)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    first = values["first_verdict"]
    letters = f"{page['letters_counted']:,} letters as they are counted"
    if page["letters"] != page["letters_counted"]:
        letters += f" ({page['letters']:,} in the text)"
    rows = [
        ("page", f"{page['url']} (sequence {page['sequence']}, {page['id']})"),
        ("title", page["title"]),
        ("verdict", "unknown" if verdict is None else _kind_of(verdict)),
        ("reason", (verdict or {}).get("reason") or "none"),
        *([] if first is None else [("at first", _kind_of(first)), ("its reason", first["reason"] or "none")]),
        ("decided by", DECIDED_BY[values["decided_by"]]),
        ("kept now", "yes: new pages are compared with it" if page["kept"] else "no"),
        ("text", f"{letters}, {page['sentences']} sentences, {page['numbers']} numbers"),
        ("space", values["space"]),
        ("rule", f"{values['policy']['text']} (since record {values['policy']['since']})"),
    ]
    for name, value in rows:
        table.add_row(name, Text(terminal_safe(str(value))))
    console.print(table)


def _kind_of(verdict: dict[str, Any]) -> str:
    if not verdict["of_url"]:
        return str(verdict["kind"])
    base = f", in the base {verdict['of_base']}" if "of_base" in verdict else ""
    return f"{verdict['kind']} of {verdict['of_url']} (sequence {verdict['of']}{base})"


def _pair(console: Console, pair: dict[str, Any]) -> None:
    why = f"matches by {pair['row']!r}" if pair["matches"] else f"does not match: {pair['why_not']}"
    console.print(Text(terminal_safe(f"{pair['other']['url']} {why}"), style="bold"))
    if pair["judged"]:
        console.print(Text(f"corrected by a person: {pair['judged']}, which overrides the rule"))
    _host_letters(console, pair)
    _channels(console, pair)
    _rows(console, pair["rows"])
    if pair["score"] is not None:
        _score(console, pair["score"])
    if pair["features"] is not None:
        _features(console, pair["features"])


def _host_letters(console: Console, pair: dict[str, Any]) -> None:
    """Say how much of the texts does not count; the letters of the page itself are in the summary."""
    one, other = pair["host_letters"]["one"], pair["host_letters"]["other"]
    if one or other:
        text = f"a host's own text, not counted: about {one:,} letters of the page, {other:,} of the other page"
        console.print(Text(f"{text} ({pair['other']['letters']:,} letters)"))


def _channels(console: Console, pair: dict[str, Any]) -> None:
    columns = ("channel", "page", "other", "distance", "radius", "differing bits", "equal blocks", "found in")
    table = _table("fingerprints and index", columns)
    for channel in pair["channels"]:
        name, radius, bits = channel["channel"], channel["radius"], _list(channel["bits"])
        equal = ", ".join(str(block["block"]) for block in channel["blocks"] if not block["differing"])
        found_in = "no index" if radius is None else f"table {channel['table']}" if channel["found"] else "not found"
        row = (name, channel["one"], channel["other"], channel["distance"], radius, bits, equal, found_in)
        table.add_row(*map(_cell, row))
    keys = pair["keys"]
    if keys["used"]:
        shared = f"{len(keys['shared'])} of {keys['one']} and {keys['other']} shared"
        table.add_row("keys", _cell(shared), "", "", "", "", "", "")
    console.print(table)


def _rows(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    table = _table("the rule, row by row", ("row", "holds", "bounds"))
    for row in rows:
        bounds = Text()
        for bound in row["bounds"]:
            sign = "≥" if bound["asks"] == "at least" else "≤"
            text = f"{bound['quantity']} {_cell(bound['value'])} {sign} {bound['bound']:g}"
            bounds.append(("" if not bounds else ", ") + (text if bound["holds"] else f"[no: {text}]"))
        holds = "decides" if row["decides"] else "yes" if row["holds"] else "no"
        table.add_row(Text(terminal_safe(row["name"])), holds, bounds)
    console.print(table)


def _score(console: Console, score: dict[str, Any]) -> None:
    table = _table("the score", ("quantity", "value", "points", "against ← → for"))
    largest = max(abs(quantity["points"]) for quantity in score["quantities"]) or 1
    for quantity in score["quantities"]:
        points = quantity["points"]
        bar = Bar(2 * largest, largest + min(points, 0), largest + max(points, 0), width=BAR)
        table.add_row(quantity["name"], _cell(quantity["value"]), f"{points:+.2f}", bar)
    table.add_row("every pair", "", f"{score['intercept']:+.2f}", end_section=True)
    table.add_row("sum", "", f"{score['sum']:+.2f}", f"probability {score['probability']:.2f}")
    asked = f"{'reached' if score['holds'] else 'missed'}: {score['row']}"
    table.add_row("threshold", "", f"{score['bound']:+.2f}", Text(terminal_safe(asked)))
    console.print(table)


def _features(console: Console, features: dict[str, Any]) -> None:
    table = _table("words of the largest weight", ("word", "in", "weight", "count", "idf", "factors"))
    for both in features["shared"][:MAX_WORDS]:
        table.add_row(*_feature(both["word"], "both", both["one"]))
    for side, name in (("one", "the page"), ("other", "the other page")):
        for alone in features[side][:MAX_WORDS]:
            table.add_row(*_feature(alone["word"], name, alone["weight"]))
    console.print(table)


def _feature(word: str, where: str, weight: dict[str, Any]) -> tuple[Text, ...]:
    factors = ", ".join(f"{name} {value:g}" for name, value in weight["factors"].items() if value != 1)
    row = (terminal_safe(word), where, f"{weight['weight']:.2f}", weight["count"], f"{weight['idf']:.2f}", factors)
    return tuple(Text(_cell(value)) for value in row)


def _neighbours(console: Console, pairs: Sequence[dict[str, Any]], views: Sequence[PairView]) -> None:
    table = _table("nearest kept pages", ("page", "Jaccard", "words", "body", "found by", "why not"))
    for pair, view in zip(pairs, views, strict=True):
        distance = {channel["channel"]: channel["distance"] for channel in pair["channels"]}
        why = "a correction says that it is not" if pair["judged"] == "apart" and pair["matches"] else pair["why_not"]
        row = (
            f"{pair['other']['url']} {pair['other']['title']}",
            f"{view.similarity.jaccard:.2f}",
            distance["words"],
            distance["body"],
            _list(pair["found_by"]) or "nothing",
            why or f"matches: {pair['row']}",
        )
        table.add_row(*(Text(terminal_safe(_cell(value))) for value in row))
    console.print(table)


def _corrections(console: Console, corrections: Iterable[dict[str, Any]]) -> None:
    for correction in corrections:
        sequence, reason = correction["sequence"], correction["reason"]
        verb = "is a duplicate" if correction["duplicate"] else "is not a duplicate"
        by = f" by {correction['by']}" if correction["by"] else ""
        text = f"correction {sequence}{by}: {correction['url']} {verb} of {correction['of']} ({reason})"
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
