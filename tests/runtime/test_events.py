"""Events of the embedded filter, and that observers are never in its way."""

from pathlib import Path

import pytest

from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.embedded.filter import NearDuplicateFilter, view_of
from dedup_service.runtime.events import (
    BatchEvent,
    IndexEvent,
    Observer,
    PageDecided,
    RemovalEvent,
)
from tests.runtime.embedded.prepared import prepared


class Seen(Observer):
    """An observer that keeps events."""

    def __init__(self) -> None:
        self.batches: list[BatchEvent] = []
        self.pages: list[PageDecided] = []
        self.removals: list[RemovalEvent] = []
        self.indexes: list[IndexEvent] = []

    def batch(self, event: BatchEvent) -> None:
        self.batches.append(event)

    def decided(self, pages: list[PageDecided]) -> None:  # type: ignore[override]
        self.pages += pages

    def removed(self, event: RemovalEvent) -> None:
        self.removals.append(event)

    def index(self, event: IndexEvent) -> None:
        self.indexes.append(event)


class Broken(Observer):
    """An observer that fails."""

    def decided(self, pages: object) -> None:
        raise RuntimeError("no")


PAGES = [prepared("https://a.example/1", 1), prepared("https://b.example/1", 1), prepared("https://a.example/2", 2)]


def test_a_batch_is_reported_once_it_is_durable(tmp_path: Path) -> None:
    """Verdicts, titles, the pages that they name, where the time went, index sizes."""
    seen = Seen()
    with NearDuplicateFilter.open(tmp_path, observers=[seen]) as dedup:
        verdicts = dedup.decide_many(PAGES, [b"1", b"2", b"3"])
        again = dedup.decide_many(PAGES[:1], [b"1"])
    assert [page.verdict for page in seen.pages] == verdicts
    assert [page.title for page in seen.pages] == ["story 1", "story 1", "story 2"]
    assert [page.original for page in seen.pages] == [None, 1, None]
    assert again == verdicts[:1]
    first, second = seen.batches
    assert (first.step, first.records, dict(first.verdicts)) == ("decide", 3, {"unique": 2, "duplicate": 1})
    assert set(first.seconds) == {"decide", "commit"}
    assert (first.sequence, first.entries, first.repeated) == (3, 2, 0)
    assert (second.records, second.repeated, dict(second.verdicts)) == (1, 1, {})
    assert (seen.indexes[0].entries, seen.indexes[0].channels["words"].fingerprints) == (2, 2)
    assert seen.indexes[0].size_bytes > 0


def test_a_removal_is_reported(tmp_path: Path) -> None:
    """The event is a retraction with the URL of the page."""
    seen = Seen()
    with NearDuplicateFilter.open(tmp_path, observers=[seen]) as dedup:
        dedup.decide_many(PAGES)
        dedup.retract("https://a.example/1")
        sizes = view_of(dedup).index_event()
    assert seen.removals == [RemovalEvent("retraction", "https://a.example/1")]
    assert sizes is not None
    assert sizes.entries == 1


def test_an_observer_that_raises_is_only_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Other observers are called, and the verdicts are returned."""
    seen = Seen()
    with NearDuplicateFilter.open(tmp_path, observers=[Broken(), seen]) as dedup:
        verdicts = dedup.decide_many(PAGES)
    assert [verdict.kind for verdict in verdicts] == [VerdictKind.UNIQUE, VerdictKind.DUPLICATE, VerdictKind.UNIQUE]
    assert len(seen.pages) == 3
    assert "an observer failed" in caplog.text
