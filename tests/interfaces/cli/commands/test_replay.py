"""`twinsieve replay`: option checks, which need no broker."""

import pytest

from tests.interfaces.cli.running import Cli


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--space", "tf"], "--from pages"),
        (["--output", "a", "--to-prefix", "b."], "exclude each other"),
        (["--prefix", "a.", "--to-prefix", "a."], "give another"),
        (["--group", "news"], "add --to-prefix"),
        (["--from", "elsewhere"], "elsewhere"),
        (["--space", "tff", "--from", "pages"], "no space 'tff': give one of twinsieve"),
    ],
)
def test_wrong_usage(cli: Cli, arguments: list[str], shown: str) -> None:
    """Exit code 2, and the message says what to give instead."""
    ran = cli("replay", "--bootstrap", "127.0.0.1:1", *arguments)
    assert ran.code == 2
    assert shown in ran.err
