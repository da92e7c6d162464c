"""The sets of a folder with evaluation data, through the command line.

A set is a folder with `pages.jsonl`: `stream/` is a crawl in order, `html/` has HTML files in `html/html/`, and
`pairs/`, `natural/`, `reposts/text/`, `reposts/html/` and `english/` have labelled pairs in `pairs.jsonl`. Each is
looked for in the folder, in its `dev/`, and beside it; what is missing is left out.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.golden.runs import Run
from tests.golden.ways import filtered, written

PAIRS = ("pairs", "html", "natural", "reposts/text", "reposts/html", "english")
STREAM_RUNS = {
    "DATA stream": (),
    "DATA stream --keep 500": ("--keep", "500"),
    "DATA stream --profile broad": ("--profile", "broad"),
    "DATA stream --profile precise": ("--profile", "precise"),
}


def data_runs(data: Path) -> Iterator[Run]:
    """Yield a run for each set that there is. FileNotFoundError if there is none."""
    count = 0
    for run in _runs(data):
        count += 1
        yield run
    if not count:
        raise FileNotFoundError(f"{data} has no evaluation data: give the folder with stream/, pairs/ and html/")


def _runs(data: Path) -> Iterator[Run]:
    stream = _found(data, "stream/pages.jsonl")
    for name, options in STREAM_RUNS.items() if stream else ():
        yield Run(name, "command, 2 workers", partial(_filtered, stream, options), is_data=True)
    html = _found(data, "html/html")
    if html:
        yield Run("DATA html", "command on a folder", partial(_filtered, html, ()), is_data=True)
    for name in PAIRS:
        pairs = _found(data, f"{name}/pairs.jsonl")
        if pairs:
            yield Run(f"DATA pairs {name}", "command", partial(_compared, pairs.parent), is_data=True)


def _found(data: Path, name: str) -> Path | None:
    places = (data, data / "dev", data.resolve().parent)
    return next((place / name for place in places if (place / name).exists()), None)


def _filtered(source: Path, options: tuple[str, ...], folder: Path) -> list[bytes]:
    folder.mkdir()
    return filtered(source, folder, "--processes", "2", *options, state=folder / "state")


def _compared(pairs: Path, folder: Path) -> list[bytes]:
    folder.mkdir()
    return written(["pairs", str(pairs / "pages.jsonl"), str(pairs / "pairs.jsonl")], folder)
