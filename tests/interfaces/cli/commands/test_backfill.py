"""`backfill` refuses what it cannot do before it asks a broker."""

from pathlib import Path

import pytest

from tests.interfaces.cli.running import Cli, article, page, write_lines


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "Missing argument"),
        (("{file}",), "no broker is named"),
        (("{file}", "--bootstrap", "localhost:1", "--name", "a/b"), "cannot name a backfill"),
        (("{file}", "--bootstrap", "localhost:1", "--share", "0"), "--share"),
        (("{file}", "--bootstrap", "localhost:1", "--rate", "0"), "--rate"),
        (("{file}", "{file}", "--bootstrap", "localhost:1"), "named twice"),
        (("missing*.jsonl", "--bootstrap", "localhost:1"), "no file or folder matches"),
        (("{file}", "--bootstrap", "localhost:1", "--errors", "{file}"), "the same file"),
    ],
)
def test_what_cannot_be_done_is_refused(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    """With exit code 2 and a line that says what; the input stays as it is."""
    file = write_lines(tmp_path / "pages.jsonl", [page(1, article(1))])
    before = file.read_bytes()
    ran = cli("backfill", *(argument.format(file=file) for argument in arguments))
    assert (ran.code, says in ran.err) == (2, True), ran.err
    assert file.read_bytes() == before
