"""`twinsieve idf`: build an IDF table (inverse document frequencies) from your own pages."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features.idf import build_idf
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import SPACE, preparer_from, space_from, with_options
from dedup_service.interfaces.cli.support.outputs import BadRecords, OutputError, check_distinct, check_writable
from dedup_service.interfaces.cli.support.page_stream import iter_prepared
from dedup_service.runtime.resources import build_fingerprinter


@click.group("idf")
def idf_group() -> None:
    """Build a table of word frequencies (IDF)."""


@idf_group.command("build", cls=GroupedCommand, epilog="pages.jsonl -o idf.txt")
@click.argument("pages", metavar="PAGES")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    required=True,
    help="Write the table to FILE, one line `word value` for each word.",
)
@click.option(
    "--min-pages",
    metavar="N",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Leave out words that occur in fewer pages.",
)
@with_options(SPACE)
def build_command(pages: str, output: str, min_pages: int, **options: Any) -> int:
    """Build an IDF table from PAGES: for each word w, ln(pages / pages with w).

    PAGES is a file or folder, as `filter` reads it. The words are those of the chosen scheme. Use the table
    as `idf` in a space file; fingerprints with another table belong to another space.
    """
    check_distinct(**{"PAGES": pages, "--output": output})
    check_writable(**{"--output": output})
    space = space_from(options)
    fingerprinter = build_fingerprinter(space)
    bad = BadRecords("standard input" if pages == "-" else pages, None)
    try:
        with preparer_from(options, space) as preparer:
            read = iter_prepared(pages, preparer, bad)
            lines = build_idf((fingerprinter.words(prepared.page) for _, prepared in read), min_pages=min_pages)
    finally:
        bad.close()
    if not lines:
        raise ConfigurationError(
            f"no word occurs in {min_pages} pages of {pages}: give more pages, or a lower --min-pages"
        )
    _write(output, lines)
    click.echo(f"{len(lines):,} words in {output}", err=True)
    return ExitCode.BAD_RECORDS if bad.count else ExitCode.DONE


def _write(name: str, lines: Iterable[str]) -> None:
    """Write the table to a temporary file and rename it, so that an incomplete table is never read."""
    partial = Path(f"{name}.part")
    try:
        with partial.open("w", encoding="utf-8") as stream:
            stream.writelines(lines)
        partial.replace(name)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OutputError(f"cannot write {name}: {error.strerror}; make room and run the same command again") from error
