"""`twinsieve idf`: how rare words are, counted on a corpus of one's own."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features.idf import build_idf
from dedup_service.core.page import Page
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.options import SPACE, space_of, with_options
from dedup_service.interfaces.cli.support.outputs import BadRecords, OutputError, check_distinct
from dedup_service.runtime.readers import InputSource, open_source
from dedup_service.runtime.resources import build_fingerprinter
from dedup_service.runtime.workers.preparation import BadRecord, page_of

__all__ = ["idf_group"]


@click.group("idf")
def idf_group() -> None:
    """Make a table of how rare words are."""


@idf_group.command("build", epilog=EPILOG)
@click.argument("pages", metavar="PAGES")
@click.option("--output", "-o", metavar="FILE", required=True, help="The table: a line `word value` each.")
@click.option("--min-pages", type=click.IntRange(1), default=2, show_default=True, help="Pages that must hold a word.")
@click.option("--errors", metavar="FILE", help="Bad records, one line of JSON each.")
@with_options(*SPACE)
def build_command(pages: str, output: str, min_pages: int, errors: str | None, **options: Any) -> int:
    """Count in how many pages of PAGES each word occurs, and write idf(w) = ln(pages / pages with w).

    PAGES is read as `filter` reads its input. Words are those of the chosen scheme.
    """
    check_distinct(**{"PAGES": pages, "--output": output, "--errors": errors})
    fingerprinter = build_fingerprinter(space_of(options))
    with open_source(pages) as source:
        bad = BadRecords(source.name, errors)
        try:
            lines = build_idf(map(fingerprinter.words, _pages(source, bad)), min_pages=min_pages)
        finally:
            bad.close()
    if not lines:
        raise ConfigurationError(f"no word is on {min_pages} pages of {pages}: give more pages, or a lower --min-pages")
    _write(output, lines)
    click.echo(f"{len(lines):,} words in {output}", err=True)
    return ExitCode.BAD_RECORDS if bad.count else ExitCode.DONE


def _pages(source: InputSource, bad: BadRecords) -> Iterator[Page]:
    for record in source.records:
        if record is None:
            continue
        answer = page_of(record)
        if isinstance(answer, BadRecord):
            bad.report([(record, answer.problem)])
        else:
            yield answer


def _write(name: str, lines: Iterable[str]) -> None:
    """Write the table beside its place and move it there, so that nobody reads half of one."""
    beside = Path(f"{name}.part")
    try:
        with beside.open("w", encoding="utf-8") as stream:
            stream.writelines(lines)
        beside.replace(name)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise OutputError(f"cannot write {name}: {error.strerror}; make room and run the same command again") from error
