"""Pages of an embedded journal, found and explained: of an open filter, and from a folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dedup_service.core.page import Page
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.runtime.embedded.filter import NearDuplicateFilter, view_of
from dedup_service.runtime.explain.explainer import Explainer
from dedup_service.runtime.explain.journal_pages import JournalPages, live_pages, state_pages
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from tests.interfaces.cli.running import article

TEXT = ". ".join(article(at, 12) for at in range(20))


def page(number: int, text: str, **more: str) -> Page:
    """A page of a small site."""
    url = f"https://a.example/{number}"
    values = {"url": url, "canonical_url": url, "id": f"p{number}", "title": f"Story {number}"}
    return Page(**{**values, **more}, text=text)  # type: ignore[arg-type]


@pytest.fixture(params=["folder", "memory"])
def dedup(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NearDuplicateFilter]:
    """A filter with a page, a copy of it, an unrelated page and a short page."""
    with NearDuplicateFilter.open(tmp_path / "state" if request.param == "folder" else None) as opened:
        opened.check_many(
            [page(1, TEXT), page(2, TEXT + " And more in 2024."), page(3, article(77)), page(4, "too short")]
        )
        yield opened


def explainer(pages: JournalPages) -> Explainer:
    """An explainer with the fingerprinter of the default space."""
    return Explainer(pages, build_fingerprinter)


def test_a_duplicate_is_explained_while_the_filter_is_open(dedup: NearDuplicateFilter) -> None:
    """Any form of its address finds it; the explanation has its verdict and the row that gave it."""
    found = explainer(live_pages(dedup)).explain("https://A.example/2?utm_source=x")
    assert (found.page.sequence, found.page.original, found.decided_by) == (2, 1, "row")
    assert found.page.verdict is not None
    assert found.page.verdict.duplicate_of == "p1"
    assert found.match is not None
    assert found.match.view.matches
    assert found.match.view.row == found.page.verdict.reason
    assert (found.kept, found.match.kept, found.neighbours) == (False, True, ())


def test_a_kept_page_has_neighbours_with_the_reason_why_they_do_not_match(dedup: NearDuplicateFilter) -> None:
    """The nearest is first, and the page itself is left out; a page with too little text is not judged."""
    found = explainer(live_pages(dedup)).explain("p3")
    assert (found.kept, found.match, found.decided_by) == (True, None, "nothing")
    assert found.neighbours[0].other.sequence == 1
    assert all(neighbour.view.why_not for neighbour in found.neighbours)
    assert 3 not in {neighbour.other.sequence for neighbour in found.neighbours}
    short = explainer(live_pages(dedup)).explain(4, neighbours=1)
    assert (short.decided_by, len(short.neighbours)) == ("unjudged", 1)
    assert not any(channel.indexed for channel in short.neighbours[0].view.channels)


def test_a_page_of_repeated_letters_was_not_judged(dedup: NearDuplicateFilter) -> None:
    """It has enough letters, and its verdict says that it has too little variety."""
    assert dedup.check(page(5, "row 17 | " * 300)).kind.value == "undecided"
    found = explainer(live_pages(dedup)).explain("p5", neighbours=1)
    assert found.decided_by == "unjudged"
    assert not any(channel.indexed for channel in found.neighbours[0].view.channels)


def test_texts_are_kept_in_a_folder(dedup: NearDuplicateFilter) -> None:
    """A filter in memory keeps none: a note says so, and no features are compared."""
    found = explainer(live_pages(dedup)).explain(2)
    assert found.match is not None
    if found.text is None:
        assert found.match.features is None
        assert "the text of https://a.example/2 is no longer kept" in found.notes[0]
    else:
        assert (found.text, found.match.text) == (TEXT + " And more in 2024.", TEXT)
        assert found.match.features is not None
        assert "2024" in {feature.word for feature in found.match.features.one}
        assert found.notes == ()


def test_features_are_not_weighed_in_another_space(dedup: NearDuplicateFilter) -> None:
    """The rest is explained, and a note says what is missing."""
    other = SpaceOptions(scheme="tf")
    given = {1: page(1, TEXT), 2: page(2, TEXT)}
    found = Explainer(
        live_pages(dedup), lambda: build_fingerprinter(other), lambda known: given.get(known.sequence)
    ).explain(2)
    assert found.match is not None
    assert found.match.features is None
    assert any(dedup.space_id in note and "--space" in note for note in found.notes)


def test_the_latest_visit_is_explained(dedup: NearDuplicateFilter) -> None:
    """However far back it is; an unchanged or updated page is shown with its earlier visit."""
    dedup.check_many([page(1, TEXT), page(3, article(78))])
    header, view = dedup._state.journal.header, view_of(dedup)
    near = JournalPages(view.reading, header, view.held, view.host_text, view.entry)
    found = [near.find(name) for name in ("https://a.example/2", "p1", "https://a.example/3", "nobody")]
    assert [None if known is None else known.sequence for known in found] == [2, 5, 6, None]
    again = explainer(live_pages(dedup)).explain("https://a.example/3")
    assert again.decided_by == "address"
    assert again.match is not None
    assert (again.match.other.sequence, again.match.kept, again.kept) == (3, False, True)


def test_a_folder_is_read_while_it_is_written(tmp_path: Path) -> None:
    """The answers are the same; the rule is the one that decided the page, not the one in force."""
    folder = tmp_path / "state"
    with NearDuplicateFilter.open(folder) as dedup:
        dedup.check_many([page(1, TEXT), page(2, TEXT + " More.")])
        with state_pages(folder) as pages:
            assert explainer(pages).explain(2).decided_by == "row"
    with NearDuplicateFilter.open(folder, rule=PROFILES["simhash"]) as dedup:
        dedup.check_many([page(5, TEXT + " Yes."), page(6, TEXT)])
    with state_pages(folder) as pages:
        old, new, same = (explainer(pages).explain(reference) for reference in (2, "p5", "p6"))
    assert (old.decided_by, new.decided_by, same.decided_by) == ("row", "distance", "text")
    assert (old.in_force.since, old.in_force.changed, new.in_force.changed) == (0, True, False)
    assert old.in_force.rule == PROFILES["balanced"]
    assert any("another rule is in force now" in note for note in old.notes)
