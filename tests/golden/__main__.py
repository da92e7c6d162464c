"""The golden run: the same verdicts as before, whatever way pages come.

    python -m tests.golden [DATA] [--service] [--update] [--write FILE] [--against FILE] [--only SET]

Crawls of our own (`tests.golden.crawls`) take every way (`tests.golden.ways`); the digests of their verdicts must be
those of `digests.json`. With --service, some crawls also take the way over a real broker. DATA is a folder with
evaluation data (`tests.golden.data`), whose digests are not in the tree: --write FILE writes them, --against FILE
compares with those that another tree wrote. A change of verdicts is a change of digests.json (--update), in a commit
that says why. Exit code 1: a verdict differs.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from dedup_service import NearDuplicateFilter
from tests.golden.crawls import Crawl, crawls
from tests.golden.data import data_runs
from tests.golden.digests import Digests, difference, digests_of, read_digests, write_digests
from tests.golden.runs import Run
from tests.golden.ways import LOG_WAYS, NUMBERED_OTHERWISE, WAYS, decided_lines, generated_log

OWN = Path(__file__).with_name("digests.json")
GENERATED_PAGES = 1500


@dataclass(frozen=True, slots=True)
class Result:
    """What a run gave. disk, memory: bytes of the state, None without any; memory: of the tables of its last commit."""

    run: Run
    digests: Digests
    seconds: float
    disk: int | None
    memory: int | None
    problem: str | None = None

    def figures(self) -> dict[str, Any]:
        """Return the figures that are written beside the digests."""
        pages = max(1, self.digests.pages)
        return {"pages_a_second": round(pages / self.seconds, 1)} | {
            f"{name}_bytes_a_page": round(size / pages)
            for name, size in (("disk", self.disk), ("memory", self.memory))
            if size is not None
        }


@dataclass
class Comparison:
    """Digests that are expected, and those that were found. is_open: what is found first is expected from there on."""

    expected: dict[str, Any]
    is_open: bool = False
    found: dict[str, Any] = field(default_factory=dict)

    def check(self, name: str, digests: Digests) -> str | None:
        """Return how the verdicts of a set differ, or None."""
        expected = self.found.get(name) if self.is_open else self.expected.get(name)
        if self.is_open and (expected is None or expected["exact"] is None):
            self.found[name] = expected = digests.expected()
        self.found.setdefault(name, digests.expected())
        return difference(digests, expected)


def own_runs(only: str | None) -> Iterator[Run]:
    """Yield the runs of our own crawls."""
    for name, make in crawls().items():
        if only in {None, name}:
            crawl = make()
            yield from (_run_of(crawl, way) for way in WAYS)
    if only in {None, "generated"}:
        for way, decide in LOG_WAYS.items():
            yield Run("generated", way, lambda _, go=decide: decided_lines(go(generated_log(GENERATED_PAGES))))  # type: ignore[misc]


def _run_of(crawl: Crawl, way: str) -> Run:
    return Run(crawl.name, way, lambda folder: WAYS[way](crawl, folder), is_exact=way not in NUMBERED_OTHERWISE)


def result_of(run: Run) -> Result:
    """Run it in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder = Path(name) / "run"
        began = time.perf_counter()
        lines = run.decide(folder)
        seconds = time.perf_counter() - began
        return Result(run, digests_of(lines, is_exact=run.is_exact), seconds, *_sizes(folder))


def _sizes(folder: Path) -> tuple[int | None, int | None]:
    state = folder / "state" if (folder / "state").exists() else folder
    if not state.exists() or not any(state.glob("*.sqlite")):
        return None, None
    with NearDuplicateFilter.open(state) as dedup:
        memory = sum(dedup.info().memory.values())
    return sum(path.stat().st_size for path in state.rglob("*") if path.is_file()), memory


def table_of(results: list[Result]) -> Table:
    """Return the results as a table."""
    table = Table(caption="digest: of the verdicts as lines of JSON, or (j) without their places · state: bytes a page")
    for name in ("set", "way"):
        table.add_column(name, overflow="fold")
    for name in ("pages", "digest", "verdicts", "pages/s", "on disk", "in memory"):
        table.add_column(name, justify="right" if name != "verdicts" else "left")
    for result in results:
        digests, figures = result.digests, result.figures()
        table.add_row(
            result.run.set,
            result.run.way,
            f"{digests.pages:,}",
            f"(j) {digests.judged[:8]}" if digests.exact is None else digests.exact[:8],
            "same" if result.problem is None else f"[bold red]DIFFERENT[/]: {result.problem}",
            f"{figures['pages_a_second']:,.0f}",
            *(f"{figures[name]:,}" if name in figures else "" for name in ("disk_bytes_a_page", "memory_bytes_a_page")),
        )
    return table


def main(arguments: list[str] | None = None) -> int:
    """Run all sets, print the table, and return the exit code."""
    options = _parser().parse_args(arguments)
    own = Comparison(read_digests(OWN), is_open=options.update)
    data = Comparison(read_digests(options.against) if options.against else {}, is_open=not options.against)
    with ExitStack() as stack:
        runs = [*own_runs(options.only)]
        if options.service:
            from tests.golden.service import service_runs

            runs += stack.enter_context(service_runs())
        runs += data_runs(options.data) if options.data else ()
        results = list(_results([run for run in runs if options.only in {None, run.set}], own, data))
    console = Console()
    console.print(table_of(results))
    if options.update:
        write_digests(OWN, read_digests(OWN) | own.found)
    if options.write:
        figures = {f"{result.run.set}: {result.run.way}": result.figures() for result in results}
        write_digests(options.write, own.found | data.found | {"figures": figures})
    different = sum(result.problem is not None for result in results)
    seconds = sum(result.seconds for result in results)
    console.print(
        f"{len(results)} runs in {seconds:.0f} s: {f'{different} DIFFERENT' if different else 'all the same'}"
    )
    return 1 if different else 0


def _results(runs: list[Run], own: Comparison, data: Comparison) -> Iterator[Result]:
    with _progress() as bar:
        task = bar.add_task("", total=len(runs))
        for run in runs:
            bar.update(task, description=f"{run.set}: {run.way}", refresh=True)
            result = result_of(run)
            problem = (data if run.is_data else own).check(run.set, result.digests)
            yield replace(result, problem=problem)
            bar.update(task, advance=1, refresh=True)


def _progress() -> Progress:
    """Return a bar that draws when it is told to: a thread that draws would be forked with its locks."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, nargs="?", metavar="DATA", help="folder with evaluation data")
    parser.add_argument("--service", action="store_true", help="also over a real broker")
    parser.add_argument("--only", metavar="SET", help="run this set alone")
    parser.add_argument("--update", action="store_true", help="write what is found to digests.json")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write digests and figures, those of DATA too")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare DATA with what another tree wrote")
    return parser


if __name__ == "__main__":
    sys.exit(main())
