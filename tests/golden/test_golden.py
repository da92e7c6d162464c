"""The golden run: one changed verdict is a difference, and the smallest crawl has the digests of the tree."""

from functools import partial
from pathlib import Path

import pytest

from tests.golden.__main__ import main
from tests.golden.crawls import Crawl, Section, crawls
from tests.golden.digests import difference, digests_of
from tests.golden.runs import Run
from tests.golden.ways import batches

CRAWL = Crawl("demo", (Section(crawls()["demo"]().sections[0].steps[:12]),))


def test_one_changed_verdict_is_a_difference(tmp_path: Path) -> None:
    """Another verdict on one page, another sequence, and a missing verdict each give other digests."""
    lines = batches(CRAWL, tmp_path / "state")
    expected = digests_of(lines).expected()
    assert difference(digests_of(lines), expected) is None
    assert difference(digests_of(lines, is_exact=False), expected) is None
    changed = [*lines[:-1], lines[-1].replace(b'"unique"', b'"duplicate"')]
    assert changed != lines
    assert difference(digests_of(changed), expected) == "other verdicts"
    assert difference(digests_of(changed, is_exact=False), expected) == "other verdicts"
    renumbered = [*lines[:-1], lines[-1].replace(b'"sequence":', b'"sequence":9')]
    assert difference(digests_of(renumbered), expected) == "other sequences"
    assert difference(digests_of(lines[1:]), expected) == "11 verdicts, expected 12"


def test_a_difference_in_a_long_set_is_placed() -> None:
    """The first block of 1,000 verdicts that differs is named."""
    lines = [b'{"sequence":%d}\n' % number for number in range(2_500)]
    expected = digests_of(lines).expected()
    lines[1_700] = b'{"sequence":1700,"verdict":"unique"}\n'
    assert difference(digests_of(lines), expected) == "other verdicts from 1001 to 2000 on"


def test_a_changed_verdict_fails_the_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The table names set and way, and the exit code is 1; without the change it is 0."""

    def runs(_only: str | None, *, changed: bool) -> list[Run]:
        def decide(folder: Path) -> list[bytes]:
            lines = batches(crawls()["demo"](), folder)
            return [lines[0].replace(b"undecided", b"unique"), *lines[1:]] if changed else lines

        return [Run("demo", "batches", decide)]

    for changed in (False, True):
        monkeypatch.setattr("tests.golden.__main__.own_runs", partial(runs, changed=changed))
        assert main([]) == changed
        assert ("DIFFERENT" in capsys.readouterr().out) == changed
