"""docs/compatibility.md: a state and a log of each release are read, or refused with what to do, and never misread."""

import base64
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dedup_service import NearDuplicateFilter, StateError, VerdictKind
from tests.compatibility.__main__ import HERE, PAGES
from tests.sharded_run import LoggedMessage, decided_alone

FILES = sorted(HERE.glob("*.tar.xz"))


@pytest.fixture(params=FILES, ids=lambda file: file.name)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """What a release wrote: `state` and `log`."""
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@contextmanager
def suppress_refusal(way_on: str) -> Iterator[None]:
    """Accept a StateError whose message names this way on."""
    try:
        yield
    except StateError as error:
        if way_on not in str(error):
            raise


def test_there_are_files_of_a_release() -> None:
    """Without any, the tests below would test nothing."""
    assert FILES


def test_a_state_goes_on_or_says_how(folder: Path) -> None:
    """A copy of its first page is a duplicate; of another space or format, the refusal names both and a way on."""
    with suppress_refusal("start a new state folder"), NearDuplicateFilter.open(folder / "state") as dedup:
        assert dedup.info().entries == 2
        verdict = dedup.check(PAGES[2])
        assert (verdict.kind, verdict.duplicate_of) == (VerdictKind.DUPLICATE, PAGES[0].id)


def test_a_log_has_its_verdicts_or_says_how(folder: Path) -> None:
    """Its pages are decided as they were; of another format, the refusal names both and a way on."""
    values = [base64.b64decode(line) for line in (folder / "log").read_bytes().splitlines()]
    messages = [LoggedMessage(offset, value) for offset, value in enumerate(values)]
    with suppress_refusal("start a new log"):
        verdicts = [outcome.verdict for outcome in decided_alone(messages) if outcome.verdict is not None]
        assert [verdict.kind for verdict in verdicts] == [*[VerdictKind.UNIQUE] * 2, VerdictKind.DUPLICATE]
        assert verdicts[2].duplicate_of == PAGES[0].id
