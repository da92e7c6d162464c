"""Print two pages side by side on a terminal, with their differences marked, for a person to compare.

The result of the rule is not shown, so that it does not influence the person. All strings of a page are
made safe for a terminal first, and none is read as markup.
"""

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dedup_service.core.page import Page
from dedup_service.interfaces.terminal_safe import terminal_safe
from dedup_service.interfaces.text_diff import Piece, Spans, passages, unshared_numbers

MAX_LETTERS = 20_000
"""Characters of each text that are compared and shown."""

MAX_EQUAL, MAX_DIFFERENT = 160, 1500
"""Characters of a piece of text, equal or different, above which its middle is omitted."""

MIN_OMITTED = 40
"""Characters that are never omitted: the notice would be about as long."""

MAX_NUMBERS = 20
STYLES = ("bold red", "bold green")
HOST_STYLE = "dim italic bright_black"


def show_pair(
    console: Console, title: str, left: Page, right: Page, host_spans: tuple[Spans, Spans] = ((), ())
) -> None:
    """Print both pages under `title`: titles, URLs, numbers that only one has, and the texts by passage.

    host_spans: where each text is a host's own; these parts are grey.
    """
    table = Table(title=title, title_justify="left", expand=True, show_lines=True)
    for page in (left, right):
        table.add_column(Text(terminal_safe(urlsplit(page.canonical_url).hostname or "")), ratio=1, overflow="fold")
    marker = _Marker(console)
    table.add_row(*marker.differing(left.title, right.title))
    table.add_row(*(Text(terminal_safe(page.url)) for page in (left, right)))
    details = [f"{len(page.text):,} characters{f', {page.date}' if page.date else ''}" for page in (left, right)]
    table.add_row(*(Text(terminal_safe(detail), style="dim") for detail in details))
    texts = left.text[:MAX_LETTERS], right.text[:MAX_LETTERS]
    table.add_row(*marker.numbers(unshared_numbers(*texts)))
    for passage in passages(*texts, host_spans):
        table.add_row(marker.side(passage.left, 0), marker.side(passage.right, 1))
    if max(len(left.text), len(right.text)) > MAX_LETTERS:
        table.add_row(*(f"… {max(0, len(page.text) - MAX_LETTERS):,} more" for page in (left, right)))
    console.print(table)
    if any(host_spans):
        console.print(marker.host("grey: a host's own text, which does not count"))


class _Marker:
    """Marks differences by colour, or by brackets on a terminal without colours."""

    def __init__(self, console: Console) -> None:
        plain = console.no_color or not console.color_system
        self._brackets = ("⟦", "⟧") if plain else ("", "")
        self._host_brackets = ("⟨", "⟩") if plain else ("", "")

    def side(self, pieces: Iterable[Piece], side: int) -> Text:
        """Return the pieces of one side, 0 or 1, as one text."""
        text = Text()
        before, after = self._brackets
        for piece in pieces:
            if piece.host:
                text.append(self.host(piece.text))
            elif piece.alike:
                text.append(_shortened(terminal_safe(piece.text), MAX_EQUAL), style="dim")
            else:
                text.append(before + _shortened(terminal_safe(piece.text), MAX_DIFFERENT) + after, style=STYLES[side])
        return text

    def host(self, text: str) -> Text:
        """Return text that is a host's own."""
        before, after = self._host_brackets
        return Text(before + _shortened(terminal_safe(text), MAX_EQUAL) + after, style=HOST_STYLE)

    def differing(self, left: str, right: str) -> tuple[Text, Text]:
        """Return two short texts with their differences marked."""
        found = passages(left, right)
        sides: Sequence[Iterable[Piece]] = (
            [piece for passage in found for piece in passage.left],
            [piece for passage in found for piece in passage.right],
        )
        return self.side(sides[0], 0), self.side(sides[1], 1)

    def numbers(self, only: tuple[list[str], list[str]]) -> tuple[Text, Text]:
        """Return one line for each side: the numbers that only this side has."""
        texts = []
        for side, numbers in enumerate(only):
            more = f" and {len(numbers) - MAX_NUMBERS} more" if len(numbers) > MAX_NUMBERS else ""
            line = "only here: " + ", ".join(numbers[:MAX_NUMBERS]) + more if numbers else "all numbers are shared"
            texts.append(Text(terminal_safe(line), style=STYLES[side] if numbers else "dim"))
        return texts[0], texts[1]


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit + MIN_OMITTED:
        return text
    half = limit // 2
    return f"{text[:half]} […{len(text) - 2 * half:,} characters…] {text[-half:]}"
