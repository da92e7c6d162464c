"""`twinsieve filter`: pages of files in, verdicts out, in input order."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import click

from dedup_service.core.verdict import Action, Verdict, VerdictKind
from dedup_service.interfaces.cli.support.dashboard_options import DASHBOARD, embedded_dashboard, tell_where
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.options import MATCHING, SPACE, rule_of, space_of, with_options
from dedup_service.interfaces.cli.support.outputs import BadRecords, KeptOutput, OutputFile, check_distinct, open_kept
from dedup_service.interfaces.cli.support.page_stream import run
from dedup_service.interfaces.cli.support.progress import Advance, progress
from dedup_service.interfaces.cli.support.stop_signals import Interrupt
from dedup_service.interfaces.cli.support.summary import Summary
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.events import Observers
from dedup_service.runtime.readers import Record, open_source
from dedup_service.runtime.readers.folder import DEFAULT_PREFIX
from dedup_service.runtime.verdict_json import verdict_line
from dedup_service.runtime.workers.preparation import Preparer

__all__ = ["filter_command"]


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where the lines of a run go, and who counts them."""

    verdict_file: OutputFile
    kept: KeptOutput | None
    bad_records: BadRecords
    summary: Summary
    advance: Advance

    def verdicts(self, decided: Sequence[tuple[Record, Verdict]]) -> None:
        """Write a batch of verdicts, and the records that are kept."""
        if self.kept is not None:
            self.kept.write([record for record, verdict in decided if verdict.kind is not VerdictKind.DUPLICATE])
        self.verdict_file.write([verdict_line(verdict) for _, verdict in decided])
        self.summary.count(verdict for _, verdict in decided)
        self.advance(len(decided), sum(len(record.raw) for record, _ in decided))

    def bad(self, records: Sequence[tuple[Record, str]]) -> None:
        """Report a batch of bad records."""
        self.bad_records.report(records)
        self.summary.bad_records += len(records)
        self.advance(0, sum(len(record.raw) for record, _ in records))


@click.command("filter", epilog=EPILOG)
@click.argument("source", metavar="[FILE|FOLDER|-]", default="-")
@click.option("--output", "-o", metavar="FILE|-", default="-", help="Verdicts, one line of JSON a page. [default: -]")
@click.option("--kept", metavar="FILE", help="Every page that is not called a duplicate, as it came.")
@click.option("--errors", metavar="FILE", help="Bad records, one line of JSON each.")
@click.option("--state", metavar="DIR", help="Remember pages here; without it, in memory only.")
@click.option(
    "--action",
    type=click.Choice([action.value for action in Action]),
    default=Action.FLAG.value,
    show_default=True,
    help="What becomes of duplicates. No action takes a verdict out of the output.",
)
@with_options(*MATCHING, *SPACE)
@click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="That prepare pages.")
@click.option("--shards", type=click.IntRange(1), default=1, show_default=True, help="Parts of the index.")
@click.option("--url-prefix", default=DEFAULT_PREFIX, show_default=True, help="Goes before the paths of a folder.")
@with_options(*DASHBOARD)
@click.option("--json", "as_json", is_flag=True, help="Summary as one line of JSON on stderr.")
@click.option("--quiet", "-q", is_flag=True, help="No summary.")
def filter_command(source: str, **options: Any) -> int:
    """Give every page a verdict: unique, duplicate, unchanged, updated or undecided.

    Reads JSON lines (id, url, title, text or html, …; .gz too), a .warc or .warc.gz file, or a folder of
    HTML. Running the same command on the same state again gives every record the verdict it had, and so
    completes an output that was cut short.
    """
    _check_files(source, options)
    started = time.monotonic()
    summary = Summary()
    with Interrupt() as interrupt:
        space_id = _run(source, options, summary, interrupt)
    facts = {"action": options["action"], "space": space_id, "seconds": round(time.monotonic() - started, 3)}
    if options["as_json"]:
        summary.print_json(**facts, interrupted=interrupt.code is not None)
    elif not options["quiet"]:
        summary.print_table(**facts)
    return interrupt.code or (ExitCode.BAD_RECORDS if summary.bad_records else ExitCode.DONE)


def _run(name: str, options: dict[str, Any], summary: Summary, interrupt: Interrupt) -> str:
    """Run the stream and return the `space_id` in which it was decided."""
    choice = space_of(options)
    rule = rule_of(options)
    watching = embedded_dashboard(options, "filter")
    observers = () if watching is None else watching.observers
    with ExitStack() as stack:
        source = stack.enter_context(open_source(name, wait=interrupt.wait, url_prefix=options["url_prefix"]))
        state = NearDuplicateFilter.open(
            options["state"], space=choice, rule=rule, shards=options["shards"], observers=observers
        )
        stack.enter_context(state)
        preparer = stack.enter_context(Preparer(choice, options["processes"]))
        if watching is not None:
            tell_where(stack.enter_context(watching.serving(state, preparer.pool_state)).address)
        verdict_file = stack.enter_context(OutputFile(options["output"]))
        kept = open_kept(options["kept"], source.kind, name) if options["kept"] else None
        if kept is not None:
            stack.callback(kept.close)
        bad_records = BadRecords(source.name, options["errors"])
        stack.callback(bad_records.close)
        advance = stack.enter_context(progress(source.name, source.size_bytes))
        outputs = Outputs(verdict_file, kept, bad_records, summary, advance)
        run(source.records, preparer, state, outputs, lambda: interrupt.code is not None, Observers(observers))
        return state.space_id


def _check_files(source: str, options: dict[str, Any]) -> None:
    """Nothing is written twice into one file, or over the input; standard input and output are two."""
    outputs = {f"--{name}": options[name] for name in ("output", "kept", "errors")}
    check_distinct(**outputs, FILE=None if source == "-" else source)
