"""A host's own text in explanations: what does not count is marked, and how much it is."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from dedup_service.core.page import Page
from dedup_service.interfaces.cli.support.explain_tables import show_explanation
from dedup_service.interfaces.explain_json import explanation_to_dict
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.explain.explainer import Explainer
from dedup_service.runtime.explain.journal_pages import live_pages, state_pages
from dedup_service.runtime.resources import build_fingerprinter
from tests.interfaces.cli.running import article

TITLES = 5
"""Other titles with which a sentence is its host's own."""

FRAME = [f"{article(seed, 12).capitalize()}." for seed in range(500, 505)]
OWN = [f"{article(seed, 12).capitalize()}." for seed in range(20)]


def page(number: int, sentences: list[str], host: str = "a.example", title: str | None = None) -> Page:
    """A page of a site whose frame is at the end of each text."""
    url = f"https://{host}/{number}"
    text = "\n".join([" ".join(sentences), " ".join(FRAME)])
    return Page(url=url, canonical_url=url, id=f"p{number}", title=title or article(900 + number, 4), text=text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state: five other pages of the host, an article, its edited copy, and one on a host without a frame so far."""
    path = tmp_path_factory.mktemp("why") / "state"
    with NearDuplicateFilter.open(path) as dedup:
        dedup.check_many([page(number, [article(number, 60)]) for number in range(1, 1 + TITLES)])
        dedup.check_many([page(6, OWN, title="Story"), page(7, [*OWN[:-1], article(99, 9)], title="Story")])
        dedup.check_many([page(8, [*OWN[1:], article(98, 9)], host="b.example", title="Story")])
    return path


def explained(folder: Path, reference: str, other: str) -> dict[str, Any]:
    """The explanation of a pair as JSON values."""
    with state_pages(folder) as pages:
        return explanation_to_dict(Explainer(pages, build_fingerprinter).explain(reference, compare_with=other))


def marked(pair: dict[str, Any], side: str) -> str:
    """The text of one side that is marked as a host's own."""
    return "".join(piece["text"] for passage in pair["passages"] for piece in passage[side] if piece["host"])


def letters(text: str) -> int:
    """The letters of a text."""
    return sum(map(str.isalnum, text))


@pytest.mark.parametrize(("one", "other"), [("p7", "p6"), ("p8", "p6"), ("p6", "p8")])
def test_the_frame_is_marked_and_counted(folder: Path, one: str, other: str) -> None:
    """It does not count on another host either, since one of the two hosts has it as its own."""
    pair = explained(folder, one, other)["match"]
    for side in ("one", "other"):
        assert marked(pair, side).split() == " ".join(FRAME).split()
        assert pair["host_letters"][side] == pytest.approx(letters("".join(FRAME)), abs=2 * len(FRAME))


def test_the_terminal_shows_it(folder: Path) -> None:
    """In brackets where there are no colours, and grey where there are; with the letters that do not count."""
    with state_pages(folder) as pages:
        found = Explainer(pages, build_fingerprinter).explain("p7")
    plain, coloured = (
        Console(file=io.StringIO(), width=200, force_terminal=True, color_system=system)
        for system in (None, "standard")
    )
    for console in (plain, coloured):
        show_explanation(console, found)
    text, styled = (console.file.getvalue() for console in (plain, coloured))  # type: ignore[attr-defined]
    assert "⟨" in text
    assert "does not count" in text
    assert f"about {explanation_to_dict(found)['match']['host_letters']['one']} letters of the page" in text
    assert "\x1b[2;3;90m" in styled
    assert "⟨" not in styled


@pytest.fixture
def learning(tmp_path: Path) -> Iterator[NearDuplicateFilter]:
    """A filter that called a page a duplicate before it knew that most of both is their host's own text."""
    with NearDuplicateFilter.open(tmp_path / "state") as dedup:
        dedup.check_many([page(1, OWN[:1], title="Story"), page(2, OWN[1:2], title="Story")])
        dedup.check_many([page(number, [article(number, 60)]) for number in range(3, 3 + TITLES)])
        yield dedup


def test_what_was_learned_since_the_verdict_is_said(learning: NearDuplicateFilter) -> None:
    """The pair is compared with what is known now, and a note tells why the result is another."""
    found = Explainer(live_pages(learning), build_fingerprinter).explain("p2")
    assert found.page.verdict is not None
    assert found.page.verdict.kind == "duplicate"
    assert found.match is not None
    assert not found.match.view.matches
    assert any("host's own meanwhile" in note for note in found.notes)
