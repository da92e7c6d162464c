"""Measure chosen sizes and template shares, and print the tables; `make quality` writes them into the page.

    python -m benchmarks.quality.at_scale DIR [--sizes 1000,10000] [--shares 0,.3,.6,.8] [--stream] [--short]

See `benchmarks.quality.scale` for what is measured.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.quality.corpora import Corpora
from benchmarks.quality.scale import crawls_of, measured
from benchmarks.quality.scale_tables import copies_table, short_copies_table, stream_table, work_table
from benchmarks.quality.short_copies import short_copies
from benchmarks.quality.store import Store
from benchmarks.quality.work import lower_priority
from benchmarks.quality.workspace import Workspace
from dedup_service.core.rules.profiles import DEFAULT_PROFILE, PROFILES


def main() -> None:
    """Measure the sizes and shares that the command line names, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality.at_scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the evaluation data")
    parser.add_argument("--sizes", default="1000,10000", metavar="N,N", help="pages (default: 1000,10000)")
    parser.add_argument("--shares", default="0,.3,.6,.8", metavar="S,S", help="of the template (default: 0,.3,.6,.8)")
    parser.add_argument("--crawls", choices=("one", "many", "both"), default="both", help="hosts (default: both)")
    parser.add_argument("--profile", choices=sorted(PROFILES), default=DEFAULT_PROFILE)
    parser.add_argument("--stream", action="store_true", help="the stream after each mixed crawl of template .3")
    parser.add_argument("--short", action="store_true", help="also exact copies of short texts")
    folder = Path(tempfile.gettempdir()) / "twinsieve-quality"
    parser.add_argument("--cache", type=Path, default=folder, metavar="FOLDER", help=f"default: {folder}")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="worker processes (default: 2)")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    shares = [float(share) for share in options.shares.split(",")]
    wanted = {"one": (False,), "many": (True,), "both": (False, True)}[options.crawls]
    crawls = [(crawl, size) for crawl, size in crawls_of(sizes, shares) if crawl.mixed in wanted]
    lower_priority()
    workspace = Workspace(Corpora(options.folder), Store(options.cache), options.processes)
    rule = PROFILES[options.profile]
    rows = measured(workspace, crawls, rule, stream_from=0 if options.stream else sys.maxsize)
    print(copies_table(rows), work_table(rows), sep="\n\n")
    if options.stream:
        print("", stream_table(rows), sep="\n")
    if options.short:
        print("", short_copies_table(short_copies(workspace, rule)), sep="\n")


if __name__ == "__main__":
    main()
