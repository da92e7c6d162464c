"""`twinsieve filter`: read pages from files and folders, write their verdicts in input order."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import click

from dedup_service.core.verdict import Action, Verdict, VerdictKind
from dedup_service.interfaces.cli.support.dashboard_options import DASHBOARD, embedded_dashboard, print_dashboard_url
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.first_use import echo_compile_notice
from dedup_service.interfaces.cli.support.options import (
    BASES,
    KEEP,
    MATCHING,
    MAX_MEMORY,
    SHARDS,
    SPACE,
    WORKERS,
    parse_duration_ms,
    preparer_from,
    rule_from,
    space_from,
    with_options,
)
from dedup_service.interfaces.cli.support.outputs import (
    BadRecords,
    KeptOutput,
    OutputFile,
    check_distinct,
    check_outside,
    open_kept,
)
from dedup_service.interfaces.cli.support.page_stream import run
from dedup_service.interfaces.cli.support.progress import Advance, progress
from dedup_service.interfaces.cli.support.stop_signals import Interrupt
from dedup_service.interfaces.cli.support.summary import Summary
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.events import Observers
from dedup_service.runtime.readers import Record, open_sources
from dedup_service.runtime.readers.folder import DEFAULT_PREFIX
from dedup_service.runtime.readers.several import expanded
from dedup_service.runtime.remote_folder import is_address
from dedup_service.runtime.verdict_json import verdict_line

__all__ = ["filter_command"]


_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Outputs:
    """The VerdictSink of a run: writes its files, counts its verdicts, moves its progress bar."""

    verdict_file: OutputFile
    kept: KeptOutput | None
    bad_records: BadRecords
    summary: Summary
    advance: Advance

    def verdicts(self, decided: Sequence[tuple[Record, Verdict]]) -> None:
        """Write a batch of verdicts, and the kept records."""
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
@click.argument("sources", metavar="[FILE|FOLDER|-]...", nargs=-1)
@click.option(
    "--output",
    "-o",
    metavar="FILE|-",
    default="-",
    help="Write one line of JSON for each page. [default: -, standard output]",
)
@click.option("--kept", metavar="FILE|FOLDER", help="Write each page that is not a duplicate, as it was read.")
@click.option("--errors", metavar="FILE", help="Write one line of JSON for each bad record.")
@click.option("--state", metavar="DIR", help="Keep the state in this folder. [default: in memory]")
@click.option(
    "--keep-journal",
    metavar="DURATION",
    callback=parse_duration_ms,
    default="forever",
    show_default=True,
    help="With --state: how long records of pages that were not kept stay (30d, 12h); kept pages stay.",
)
@click.option(
    "--action",
    type=click.Choice([action.value for action in Action]),
    default=Action.FLAG.value,
    show_default=True,
    help="Action for duplicates, shown in the summary; verdicts are written for all pages.",
)
@with_options(BASES, *MATCHING, KEEP, MAX_MEMORY, *SPACE)
@with_options(*WORKERS, SHARDS)
@click.option(
    "--url-prefix",
    metavar="TEXT",
    default=DEFAULT_PREFIX,
    show_default=True,
    help="For a folder: prefix that makes URLs of the relative paths.",
)
@with_options(*DASHBOARD)
@click.option("--json", "as_json", is_flag=True, help="Print the summary on stderr as one line of JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Print no summary.")
def filter_command(sources: tuple[str, ...], **options: Any) -> int:
    """Give every page of files and folders a verdict.

    A verdict is unique, duplicate, unchanged, updated or undecided. The verdicts are written in input order.

    FILE is JSON lines (`url`, and `text` or `html`; optionally `id`, `title` and others) or a WARC file,
    both also compressed (.gz). FOLDER has HTML files. Without an argument, or with -, JSON lines are read
    from standard input. Several are read one after the other; a pattern in quotes ('crawl/**/*.jsonl') stands
    for what matches it, by name. With several, the path of a folder's file begins with the folder's name.

    The same command on the same state gives each record its earlier verdict again, which completes an
    output that was interrupted.
    """
    if options["keep_journal"] >= 0 and not options["state"]:
        raise click.UsageError("--keep-journal is for a state folder: give --state DIR, or leave it out")
    names = expanded(sources or ("-",))
    _check_files(names, options)
    started = time.monotonic()
    summary = Summary()
    with Interrupt() as interrupt:
        space_id = _run(names, options, summary, interrupt)
    details = {"action": options["action"], "space": space_id, "seconds": round(time.monotonic() - started, 3)}
    if options["as_json"]:
        summary.print_json(**details, interrupted=interrupt.code is not None)
    elif not options["quiet"]:
        summary.print_table(**details)
    return interrupt.code or (ExitCode.BAD_RECORDS if summary.bad_records else ExitCode.DONE)


def _run(names: Sequence[str], options: dict[str, Any], summary: Summary, interrupt: Interrupt) -> str:
    """Decide the inputs and return the `space_id` of their fingerprints."""
    if not options["quiet"] and not options["as_json"]:
        echo_compile_notice()
    space = space_from(options)
    rule = rule_from(options)
    dashboard = embedded_dashboard(options, "filter")
    observers = () if dashboard is None else dashboard.observers
    with ExitStack() as stack:
        source = stack.enter_context(open_sources(names, wait=interrupt.wait, url_prefix=options["url_prefix"]))
        preparer = stack.enter_context(preparer_from(options, space))  # first: it starts while the state is read
        dedup = NearDuplicateFilter.open(
            options["state"],
            space=space,
            rule=rule,
            keep=options["keep"],
            shards=options["shards"],
            journal_days=options["keep_journal"] / _DAY_MS if options["keep_journal"] >= 0 else None,
            max_memory_bytes=options["max_memory"],
            observers=observers,
            bases=options["bases"],
        )
        stack.enter_context(dedup)
        if dashboard is not None:
            print_dashboard_url(stack.enter_context(dashboard.serving(dedup, preparer.pool_state)).address)
        verdict_file = stack.enter_context(OutputFile(options["output"]))
        kept = open_kept(options["kept"], source.kind, names) if options["kept"] else None
        if kept is not None:
            stack.callback(kept.close)
        bad_records = BadRecords(source.name, options["errors"])
        stack.callback(bad_records.close)
        advance = stack.enter_context(progress(source.name, source.size_bytes))
        outputs = Outputs(verdict_file, kept, bad_records, summary, advance)
        run(source.records, preparer, dedup, outputs, interrupt.stopped, Observers(observers))
        return dedup.space_id


def _check_files(sources: Sequence[str], options: dict[str, Any]) -> None:
    """Refuse two outputs in one file, one over an input, and files of the state. Standard input and output may be -."""
    outputs = {f"--{name}": options[name] for name in ("output", "kept", "errors")}
    folders = [base for base in options["bases"] if not is_address(base)]
    for folder in (options["state"], *folders):
        check_outside(folder, **outputs)
    for source in sources:
        name = None if source == "-" else source
        check_distinct(**outputs, FILE=name)
        check_outside(options["state"], FILE=name)
