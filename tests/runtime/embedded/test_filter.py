"""The embedded filter as its users see it: pages in, verdicts out, state on disk."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.page import Page
from dedup_service.core.rules.profiles import PROFILES, profile_text
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.embedded.database import ForeignStateError, StateClosedError, StateFullError, StateInUseError
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.resources import SpaceOptions
from tests.hangs import HANG_S

STORY = (
    "The harbour council voted on Tuesday to rebuild the eastern breakwater after three winters of storm damage. "
    "Engineers expect the work to take fourteen months and to cost less than the repairs made since the flood. "
)
OTHER = (
    "A village library in the hills has lent its first telescope to a class of nine-year-olds, who found two moons "
    "of Jupiter on a cold night and wrote to the observatory to ask what the others were called. "
)
LIMIT = """
import resource, sys
from dedup_service.core.errors import StateError
from dedup_service.core.page import Page
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
dedup = NearDuplicateFilter.open(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
given = 0
try:
    while True:
        url = f"http://site/{given}"
        dedup.check(Page(url=url, canonical_url=url, id=url, text=f"{given:09} " * 400), delivery_id=url.encode())
        given += 1
except StateError as error:
    print(given, type(error).__name__, error.retryable)
dedup.close()
"""


def page(url: str, text: str = STORY) -> Page:
    """A page with this text."""
    return Page(url=url, canonical_url=url, id=url, title="News", text=text)


def test_a_copy_is_a_duplicate_after_reopening(tmp_path: Path) -> None:
    """The folder is created if it is missing; pages kept in one opening are known in the next."""
    folder = tmp_path / "deep" / "state"
    with NearDuplicateFilter.open(folder) as dedup:
        assert dedup.check(page("http://a/1")).kind is VerdictKind.UNIQUE
        assert dedup.text_of(dedup.check(page("http://a/2", OTHER))) == OTHER
    with NearDuplicateFilter.open(folder) as dedup:
        verdicts = dedup.check_many([page("http://b/1"), page("http://a/1"), page("http://c/1", "")])
        assert [v.kind.value for v in verdicts] == ["duplicate", "unchanged", "undecided"]
        assert (verdicts[0].duplicate_of, verdicts[0].space) == ("http://a/1", dedup.space_id)
        assert dict(dedup.info().pages) == {
            "unique": 2, "duplicate": 1, "unchanged": 1, "updated": 0, "undecided": 1,
        }  # fmt: skip


def test_a_rule_is_named_as_on_the_command_line(tmp_path: Path) -> None:
    """By the name of a profile, or by a file, as `calibrate` writes it; another name is refused."""
    file = tmp_path / "profile.toml"
    file.write_text(profile_text(PROFILES["broad"]), "utf-8")
    for rule, found in (("precise", "precise"), (file, "broad"), (str(file), "broad")):
        with NearDuplicateFilter.open(None, rule=rule) as dedup:
            assert dedup.rule == PROFILES[found]
    with pytest.raises(ConfigurationError, match="no profile 'strict'"):
        NearDuplicateFilter.open(None, rule="strict")


def test_a_page_can_be_retracted_by_page_verdict_or_url() -> None:
    """Each removes the kept page; its next copy is unique."""
    with NearDuplicateFilter.open(None) as dedup:
        for number, name in enumerate(("page", "verdict", "url")):
            kept = page(f"http://a/{number}")
            verdict = dedup.check(kept)
            assert verdict.kind is VerdictKind.UNIQUE
            assert dedup.retract({"page": kept, "verdict": verdict, "url": kept.url}[name]) == verdict
        with pytest.raises(StateError, match="retracted already"):
            dedup.retract(page("http://a/0"))


def test_a_second_filter_on_the_folder_is_refused(tmp_path: Path) -> None:
    """After the first filter is closed, the folder can be opened again."""
    first = NearDuplicateFilter.open(tmp_path)
    with pytest.raises(StateInUseError, match="in use by process"):
        NearDuplicateFilter.open(tmp_path)
    first.close()
    first.close()
    NearDuplicateFilter.open(tmp_path).close()


def test_another_space_is_refused_and_the_folder_stays_free(tmp_path: Path) -> None:
    """With another scheme the error names both spaces; a refused opening holds no lock."""
    with NearDuplicateFilter.open(tmp_path) as dedup:
        space_id = dedup.space_id
    with pytest.raises(ForeignStateError, match=f"space {space_id}.*space tf-.*scheme"):
        NearDuplicateFilter.open(tmp_path, space=SpaceOptions(scheme="tf"))
    NearDuplicateFilter.open(tmp_path).close()


def test_fingerprints_of_128_bits_are_refused(tmp_path: Path) -> None:
    """The index takes 64 bits; nothing is stored before the error."""
    with pytest.raises(ConfigurationError, match="128 bits, the index takes 64"):
        NearDuplicateFilter.open(tmp_path, space=SpaceOptions(bits=128))
    NearDuplicateFilter.open(tmp_path).close()


def test_threads_take_turns() -> None:
    """Copies checked from many threads leave exactly one kept page; each page has its own sequence."""
    with NearDuplicateFilter.open(None) as dedup, ThreadPoolExecutor(8) as pool:
        verdicts = list(pool.map(lambda n: dedup.check(page(f"http://a/{n}")), range(40)))
    assert sorted(v.sequence for v in verdicts) == list(range(1, 41))
    assert [v.kind for v in verdicts].count(VerdictKind.UNIQUE) == 1


def test_a_path_that_is_not_a_folder_is_refused(tmp_path: Path) -> None:
    """A file at the path is a configuration error; a folder that cannot be created may be an error of the disk."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigurationError, match="is a file"):
        NearDuplicateFilter.open(tmp_path / "file")
    with pytest.raises((ConfigurationError, StateFullError)):
        NearDuplicateFilter.open(tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_real_write_limit_stops_cleanly(tmp_path: Path) -> None:
    """If the system refuses to grow a file, every verdict returned before is there afterwards."""
    answer = subprocess.run(
        [sys.executable, "-c", LIMIT, str(tmp_path)], capture_output=True, text=True, check=True, timeout=HANG_S
    )
    given, error, retryable = answer.stdout.split()
    assert (error, retryable) == ("StateFullError", "True")
    assert int(given) > 0
    with NearDuplicateFilter.open(tmp_path) as dedup:
        assert dedup.info().sequence == int(given)
        assert all(dedup.verdict_of(f"http://site/{n}".encode()) is not None for n in range(int(given)))


@pytest.mark.parametrize("in_memory", [True, False])
def test_info_of_a_closed_filter_says_that_it_is_closed(tmp_path: Path, in_memory: bool) -> None:
    """Nothing is damaged, so the error does not say so."""
    dedup = NearDuplicateFilter.open(None if in_memory else tmp_path / "state")
    dedup.close()
    with pytest.raises(StateClosedError, match="is closed: open the state again"):
        dedup.info()


@pytest.mark.parametrize(("folder", "days", "says"), [(None, 7, "give a folder"), ("state", 0, "above 0, got 0")])
def test_days_of_the_journal_are_checked(tmp_path: Path, folder: str | None, days: float, says: str) -> None:
    """They are of a folder, and a positive number."""
    with pytest.raises(ConfigurationError, match=says):
        NearDuplicateFilter.open(None if folder is None else tmp_path / folder, journal_days=days)
