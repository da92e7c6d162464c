"""Measure the quality of the verdicts and write docs/quality.md and its pictures.

    python -m benchmarks.quality DIR [--only PART ...] [--cache FOLDER] [--processes N] [--sizes N,N]
                                [--docs FOLDER]

DIR has the folders stream/, pairs/ and html/ of the evaluation data; natural/ is in DIR or beside it. Without
natural/ everything else is measured. Results are cached under a digest of the code and data that they depend
on, so an interrupted run continues, and an unchanged part costs nothing. With --only, tables and pictures that
also need other parts are left unchanged, unless those parts are in the cache.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.quality.corpora import Corpora
from benchmarks.quality.page import replaced
from benchmarks.quality.parts import PARTS, is_cached, result
from benchmarks.quality.pictures import PICTURES
from benchmarks.quality.store import ROOT, Store
from benchmarks.quality.tables import TABLES
from benchmarks.quality.work import lower_priority
from benchmarks.quality.workspace import Workspace

DOCS = ROOT / "docs"


def main() -> None:
    """Run the parts, then write the tables and pictures that they allow."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the evaluation data")
    parser.add_argument("--only", nargs="+", choices=sorted(PARTS), metavar="PART", help=", ".join(PARTS))
    cache = Path(tempfile.gettempdir()) / "twinsieve-quality"
    parser.add_argument("--cache", type=Path, default=cache, metavar="FOLDER", help=f"default: {cache}")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="worker processes (default: 2)")
    parser.add_argument("--sizes", metavar="N,N", help="pages of the crawls of `scale` (default: up to 100,000)")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where quality.md and images/ are (default: docs/)")
    options = parser.parse_args()
    if missing := [name for name in ("stream", "pairs", "html") if not (options.folder / name).is_dir()]:
        parser.error(f"{options.folder} has no folder {', '.join(missing)}: give the evaluation data, unpacked")
    lower_priority()
    corpora = Corpora(options.folder)
    if corpora.natural is None:
        print(f"no folder natural/ in {options.folder} or beside it: no figures of natural pairs", file=sys.stderr)
    workspace = Workspace(corpora, Store(options.cache), options.processes)
    results: dict[str, Any] = {}
    arguments = {"scale": (tuple(map(int, options.sizes.split(","))),)} if options.sizes else {}
    for name in PARTS:
        given = arguments.get(name, ())
        if not options.only or name in options.only:
            begin = time.monotonic()
            results[name] = result(workspace, name, *given)
            print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
        elif is_cached(workspace, name, *given):
            results[name] = result(workspace, name, *given)
    write(results, options.docs)


def write(results: dict[str, Any], docs: Path) -> None:
    """Write the tables whose parts have results into the page, and draw their pictures."""
    tables = {name: table.make(results) for name, table in TABLES.items() if results.keys() >= set(table.needs)}
    page = docs / "quality.md"
    page.write_text(replaced(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
    drawn = [name for name, picture in PICTURES.items() if results.keys() >= set(picture.needs)]
    for name in drawn:
        PICTURES[name].draw(results, docs / "images" / f"quality-{name}")
    print(f"{page}: {len(tables)} tables; {len(drawn)} pictures", file=sys.stderr)


if __name__ == "__main__":
    main()
