"""Two pages beside each other on a terminal, what differs marked: what a person needs to tell whether they are copies.

What the rule says of them is not shown, so that the answer is the person's own. Everything that came from a page is
made inert first, and none of it is read as markup.
"""

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dedup_service.core.page import Page
from dedup_service.interfaces.terminal_safe import terminal_safe
from dedup_service.interfaces.text_diff import Piece, numbers_apart, passages

__all__ = ["show_pair"]

MAX_LETTERS = 20_000
"""Of a text that are compared and shown; nobody reads on."""

ALIKE, DIFFERENT = 160, 1500
"""Letters of a piece of text above which its middle is left out."""

WORTH_IT = 40
"""Letters that have to be left out to be worth the words that say so."""

MAX_NUMBERS = 20
STYLES = ("bold red", "bold green")


def show_pair(console: Console, title: str, left: Page, right: Page) -> None:
    """Print both pages under `title`: titles, addresses, numbers that only one has, and the texts by passages."""
    table = Table(title=title, title_justify="left", expand=True, show_lines=True)
    for place in (left, right):
        table.add_column(Text(terminal_safe(urlsplit(place.canonical_url).hostname or "")), ratio=1, overflow="fold")
    marker = _Marker(console)
    table.add_row(*marker.differing(left.title, right.title))
    table.add_row(*(Text(terminal_safe(page.url)) for page in (left, right)))
    facts = [f"{len(page.text):,} characters{f', {page.date}' if page.date else ''}" for page in (left, right)]
    table.add_row(*(Text(terminal_safe(fact), style="dim") for fact in facts))
    texts = left.text[:MAX_LETTERS], right.text[:MAX_LETTERS]
    table.add_row(*marker.numbers(numbers_apart(*texts)))
    for passage in passages(*texts):
        table.add_row(marker.side(passage.left, 0), marker.side(passage.right, 1))
    if max(len(left.text), len(right.text)) > MAX_LETTERS:
        table.add_row(*(f"… {max(0, len(page.text) - MAX_LETTERS):,} more" for page in (left, right)))
    console.print(table)


class _Marker:
    """Marks what differs by colour where there is any, else by brackets."""

    def __init__(self, console: Console) -> None:
        self._brackets = ("⟦", "⟧") if console.no_color or not console.color_system else ("", "")

    def side(self, pieces: Iterable[Piece], side: int) -> Text:
        """Return the pieces of one side as one text."""
        text = Text()
        before, after = self._brackets
        for piece in pieces:
            if piece.alike:
                text.append(_shortened(terminal_safe(piece.text), ALIKE), style="dim")
            else:
                text.append(before + _shortened(terminal_safe(piece.text), DIFFERENT) + after, style=STYLES[side])
        return text

    def differing(self, left: str, right: str) -> tuple[Text, Text]:
        """Return two short texts with what differs marked."""
        found = passages(left, right)
        sides: Sequence[Iterable[Piece]] = (
            [piece for passage in found for piece in passage.left],
            [piece for passage in found for piece in passage.right],
        )
        return self.side(sides[0], 0), self.side(sides[1], 1)

    def numbers(self, found: tuple[list[str], list[str]]) -> tuple[Text, Text]:
        """Return the numbers that only one side has."""
        texts = []
        for side, numbers in enumerate(found):
            more = f" and {len(numbers) - MAX_NUMBERS} more" if len(numbers) > MAX_NUMBERS else ""
            said = "only here: " + ", ".join(numbers[:MAX_NUMBERS]) + more if numbers else "no number of its own"
            texts.append(Text(terminal_safe(said), style=STYLES[side] if numbers else "dim"))
        return texts[0], texts[1]


def _shortened(text: str, maximum: int) -> str:
    if len(text) <= maximum + WORTH_IT:
        return text
    shown = maximum // 2
    return f"{text[:shown]} […{len(text) - 2 * shown:,} characters…] {text[-shown:]}"
