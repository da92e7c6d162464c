"""`twinsieve why`: explain the verdict on a page, side by side with the page that it matched."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction
from dedup_service.core.page import Page
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import SERVED_BASES, SPACE, TARGET, space_from, with_options
from dedup_service.interfaces.cli.support.page_sources import page_source
from dedup_service.runtime.readers.open import open_source
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.workers.preparation import BadRecord, Preparer

if TYPE_CHECKING:
    from dedup_service.runtime.explain.page_source import KnownPage


@click.command("why", cls=GroupedCommand, epilog="https://example.org/page --state state")
@click.argument("url")
@with_options(*TARGET, SERVED_BASES)
@click.option("--of", metavar="URL", help="Compare with this page instead of the original.")
@click.option(
    "--neighbours",
    metavar="N",
    type=click.IntRange(0, 20),
    help="Number of nearest kept pages to show. [default: 5 for a kept page, otherwise 0]",
)
@click.option(
    "--page", "files", metavar="FILE", multiple=True, help="Input with the texts, as `filter` reads it; repeatable."
)
@with_options(SPACE)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON, as /api/why does.")
def why_command(url: str, **options: Any) -> int:
    """Explain the verdict on the page at URL.

    Shows the page that it matched, the differences of the two texts, and every bound of the rule with its
    value. For a kept page, shows its nearest neighbours and why they did not match.

    URL is an address in any form that has the same canonical URL; its latest visit is explained. Here and
    in --of, `#NUMBER` names a page by its sequence instead.

    For a service, the whole log is read; the texts come from the topic `pages`, as long as they are
    retained there, and those of its bases (--base) from the bases. A state folder has texts within its budget. Give
    expired texts with --page.
    """
    from dedup_service.runtime.explain.explainer import Explainer
    from dedup_service.runtime.explain.page_source import UnknownPageError

    space = space_from(options)
    fingerprinter = partial(build_fingerprinter, space)
    other = None if options["of"] is None else _reference(options["of"])
    references = [_reference(url)] if other is None else [_reference(url), other]
    with page_source(options, references) as source:
        try:
            explanation = Explainer(source, fingerprinter, _finder_in(options["files"], space)).explain(
                _reference(url), compare_with=other, neighbours=options["neighbours"]
            )
        except UnknownPageError as error:
            click.echo(f"twinsieve: {error}", err=True)
            return ExitCode.BAD_RECORDS
    if options["as_json"]:
        from dedup_service.interfaces.explain_json import explanation_to_dict

        click.echo(msgspec.json.encode(explanation_to_dict(explanation)).decode())
    else:
        from rich.console import Console

        from dedup_service.interfaces.cli.support.explain_tables import show_explanation

        show_explanation(Console(), explanation)
    return ExitCode.DONE


_MOST_DIGITS = 20
"""No sequence has as many; Python refuses to read 5,000."""


def _reference(text: str) -> str | int:
    number = text.removeprefix("#")
    is_number = number.isascii() and number.isdecimal() and len(number) < _MOST_DIGITS
    return int(number) if text.startswith("#") and is_number else text


def _finder_in(files: tuple[str, ...], space: SpaceOptions) -> "Callable[[KnownPage], Page | None]":
    """Return a function that finds a page in the files; HTML is extracted only for the page itself."""

    def find(known: "KnownPage") -> Page | None:
        urls = {known.url, known.canonical_url}
        for name in files:
            with open_source(name) as source:
                for record in source.records:
                    if record is None:
                        continue
                    try:
                        header = record.page(lambda _html, _declared: Extraction(problem="not extracted"))
                    except RecordError:
                        continue
                    if urls.isdisjoint({header.url, header.canonical_url}):
                        continue
                    with Preparer(space) as preparer:
                        page = preparer.page_of(record)
                    if not isinstance(page, BadRecord):
                        return page
        return None

    return find
