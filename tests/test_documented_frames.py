"""docs/frames.md prints what it says."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "frames.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
_LIBRARY = re.compile(r"^import (pandas|polars|duckdb)", re.MULTILINE)


def test_each_block_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks run in their order, as in a notebook; one with a frame library runs where that is installed."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = _BLOCK.findall(PAGE.read_text("utf-8"))
    assert len(blocks) > 8
    for code, printed in blocks:
        library = _LIBRARY.search(code)
        if library is None or find_spec(library[1]):
            exec(code, names)
            assert capsys.readouterr().out == printed, code
