"""`twinsieve retract` on a state folder, and option checks of `correct`."""

from pathlib import Path

import pytest

from tests.interfaces.cli.running import Cli, page, write_lines


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the broker from the environment."""
    monkeypatch.delenv("TWINSIEVE_BOOTSTRAP", raising=False)


@pytest.fixture
def state(cli: Cli, tmp_path: Path) -> Path:
    """A state folder with three pages."""
    pages = write_lines(tmp_path / "pages.jsonl", [page(number) for number in range(3)])
    assert cli("filter", pages, "--state", tmp_path / "state", "--quiet").code == 0
    return tmp_path / "state"


def test_pages_are_named_by_id_or_on_standard_input(cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page is retracted once, also if it is named twice."""
    monkeypatch.setattr("sys.stdin", ["p1\n", "\n", "https://news.example/2\n", "p1\n"])
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


def test_an_unknown_page_is_reported(cli: Cli, state: Path) -> None:
    """The message names it, and the other pages are retracted."""
    ran = cli("retract", "https://news.example/77", "https://news.example/0", "--state", state)
    assert ran.code == 3
    assert "https://news.example/77" in ran.err
    assert "retraction of https://news.example/0" in ran.out


def test_an_invalid_url_is_refused(cli: Cli) -> None:
    """A correction names two pages by their URLs."""
    ran = cli("correct", "nowhere", "--duplicate-of", "https://news.example/1", "--bootstrap", "a:1")
    assert ran.code == 2
    assert "nowhere" in ran.err


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
