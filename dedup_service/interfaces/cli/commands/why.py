"""`twinsieve why`: why a page has its verdict, with the page it matched beside it."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.core.page import Page
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.options import SPACE, TARGET, space_of, with_options
from dedup_service.interfaces.cli.support.page_sources import page_source
from dedup_service.runtime.readers import open_source
from dedup_service.runtime.resources import build_fingerprinter
from dedup_service.runtime.workers.preparation import BadRecord, page_of

if TYPE_CHECKING:
    from dedup_service.runtime.explain import KnownPage

__all__ = ["why_command"]


@click.command("why", epilog=EPILOG)
@click.argument("url")
@with_options(*TARGET)
@click.option("--of", metavar="URL", help="Compare with this page instead of the one that the verdict names.")
@click.option("--neighbours", type=click.IntRange(0, 20), help="Nearest pages to show. [default: 5 of a kept page]")
@click.option("--page", "files", metavar="FILE", multiple=True, help="Has the texts again, as `filter` reads it.")
@with_options(*SPACE)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON, as /api/why gives it.")
def why_command(url: str, **options: Any) -> int:
    """Tell why the page at URL has its verdict: what it matched, what differs, and every bound of the rule.

    URL is an address in any form that leads to the canonical one; the latest visit counts. In place of an address, here
    and in --of, #NUMBER is a sequence. Of a page that was kept, its nearest neighbours and why they did not match.

    A service's log is read whole: it has the fingerprints, and the topic pages the texts while it keeps them. A state
    folder has the texts within its budget; --page gives one again.
    """
    from dedup_service.runtime.explain import Explainer, UnknownPageError

    fingerprinter = partial(build_fingerprinter, space_of(options))
    other = None if options["of"] is None else _reference(options["of"])
    wanted = [_reference(url)] if other is None else [_reference(url), other]
    with page_source(options, wanted) as source:
        try:
            found = Explainer(source, fingerprinter, _given(options["files"])).explain(
                _reference(url), compare_with=other, neighbours=options["neighbours"]
            )
        except UnknownPageError as error:
            click.echo(f"twinsieve: {error}", err=True)
            return ExitCode.BAD_RECORDS
    if options["as_json"]:
        from dedup_service.interfaces.explain_json import explanation_values

        click.echo(msgspec.json.encode(explanation_values(found)).decode())
    else:
        from rich.console import Console

        from dedup_service.interfaces.cli.support.explain_tables import show_explanation

        show_explanation(Console(), found)
    return ExitCode.DONE


def _reference(text: str) -> str | int:
    number = text.removeprefix("#")
    return int(number) if text.startswith("#") and number.isascii() and number.isdecimal() else text


def _given(files: tuple[str, ...]) -> "Callable[[KnownPage], Page | None]":
    """Return what finds a page in the files; HTML is extracted of the one that is looked for alone."""

    def find(known: "KnownPage") -> Page | None:
        addresses = {known.url, known.canonical_url}
        for name in files:
            with open_source(name) as source:
                for record in source.records:
                    if record is None:
                        continue
                    try:
                        named = record.page(lambda _html, _declared: Extraction(problem="not looked at"))
                    except RecordError:
                        continue
                    if addresses.isdisjoint({named.url, named.canonical_url}):
                        continue
                    page = page_of(record)
                    if not isinstance(page, BadRecord):
                        return page
        return None

    return find
