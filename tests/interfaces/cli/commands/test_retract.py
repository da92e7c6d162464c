"""`twinsieve retract` on a state folder, and option checks of `correct`."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from dedup_service.core.log_records import LogRecord
from tests.interfaces.cli.running import Cli, page, write_lines


@pytest.fixture
def state(cli: Cli, tmp_path: Path) -> Path:
    """A state folder with three pages."""
    pages = write_lines(tmp_path / "pages.jsonl", [page(number) for number in range(3)])
    assert cli("filter", pages, "--state", tmp_path / "state", "--quiet").code == 0
    return tmp_path / "state"


def test_pages_are_named_by_id_or_on_standard_input(cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page is retracted once, also if it is named twice."""
    monkeypatch.setattr("sys.stdin", ["\ufeffp1\n", "\n", "https://news.example/2\n", "p1\n"])
    ran = cli("retract", "-", "--state", state)
    assert ran.code == 0
    assert [line.split(",")[0] for line in ran.out.splitlines()] == [
        "sequence 4: retraction of https://news.example/1",
        "sequence 5: retraction of https://news.example/2",
    ]


def test_a_retracted_page_is_read_nowhere(cli: Cli, state: Path) -> None:
    """Neither URL nor title is in the folder, and `--keep-record` leaves both."""
    assert cli("retract", "https://news.example/0", "--state", state, "--keep-record").code == 0
    assert cli("retract", "https://news.example/1", "--state", state).code == 0
    content = b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())
    assert b"https://news.example/0" in content
    assert b"https://news.example/1" not in content
    again = cli("retract", "https://news.example/0", "--state", state)
    assert again.code == 3
    assert "Its text, title and URL are erased" in again.err
    assert b"https://news.example/0" not in b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())


def test_an_address_cannot_steer_the_terminal(cli: Cli, tmp_path: Path) -> None:
    """Control characters of a page's address are shown as pictures."""
    pages = write_lines(tmp_path / "pages.jsonl", [page(1) | {"url": "https://news.example/\x1b[2J", "id": "p1"}])
    assert cli("filter", pages, "--state", tmp_path / "state", "--quiet").code == 0
    ran = cli("retract", "p1", "--state", tmp_path / "state")
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert "retraction of https://news.example/␛[2J" in ran.out


@pytest.mark.parametrize("option", ["--export", "--pages"])
def test_an_export_over_a_file_of_the_state_is_refused(cli: Cli, state: Path, option: str) -> None:
    """It would empty the journal."""
    journal = state / "journal.sqlite"
    before = journal.read_bytes()
    ran = cli("corrections", "--state", state, "--export", state.parent / "pairs.jsonl", option, journal)
    assert (ran.code, f"{option} '{journal}' is in the state folder" in ran.err) == (2, True)
    assert journal.read_bytes() == before


def test_an_unknown_page_is_reported(cli: Cli, state: Path) -> None:
    """The message names it, and the other pages are retracted."""
    ran = cli("retract", "https://news.example/77", "https://news.example/0", "--state", state)
    assert ran.code == 3
    assert "https://news.example/77" in ran.err
    assert "retraction of https://news.example/0" in ran.out


@pytest.mark.parametrize("name", ["urn:isbn:1", "row 17", "file:///a.html"])
def test_any_address_can_be_named_in_the_log_of_a_service(cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A page may have any name, and what was published under it must be possible to take down."""
    added: list[LogRecord] = []

    def add(_connection: object, _topics: object, records: Sequence[LogRecord], **_: object) -> list[int]:
        added.extend(records)
        return list(range(len(records)))

    monkeypatch.setattr("dedup_service.runtime.kafka.control.operator_records.add_records", add)
    retracted = cli("retract", f" {name}", "HTTPS://news.example:443/1", "--bootstrap", "a:1")
    corrected = cli("correct", name, "--duplicate-of", "https://news.example/1", "--bootstrap", "a:1")
    assert (retracted.code, corrected.code) == (0, 0)
    assert "is no Web address" in retracted.err
    assert [getattr(record, "url", None) for record in added] == [name, "https://news.example/1", name]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--duplicate-of", "https://a.example/2", "--not-duplicate-of", "https://a.example/2"],
        ["--duplicate-of", "https://A.example/1"],
    ],
)
def test_corrections_name_one_other_page(cli: Cli, arguments: list[str]) -> None:
    """None, two, or the page itself are refused."""
    assert cli("correct", "https://a.example/1", *arguments, "--bootstrap", "a:1").code == 2
