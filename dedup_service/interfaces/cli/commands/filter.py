"""`twinsieve filter`: read pages from files and folders, write their verdicts in input order."""

import time
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from dedup_service.core.verdict import VerdictKind
from dedup_service.interfaces.cli.support.dashboard_options import DASHBOARD, embedded_dashboard, print_dashboard_url
from dedup_service.interfaces.cli.support.dry_run import dry_run
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.kept_archive import KeptArchive, index_name
from dedup_service.interfaces.cli.support.kept_pages import KeptOutput, appends, open_kept
from dedup_service.interfaces.cli.support.options import (
    BASES,
    COLUMNS,
    KEEP,
    MAX_MEMORY,
    PROCESSES,
    PROFILE,
    SPACE,
    URL_PREFIX,
    parse_duration_ms,
    preparer_from,
    rule_from,
    space_from,
    with_options,
)
from dedup_service.interfaces.cli.support.outputs import (
    BadRecords,
    check_distinct,
    check_local,
    check_outside,
    check_unmatched,
    check_writable,
)
from dedup_service.interfaces.cli.support.page_stream import DecidedRecord, run
from dedup_service.interfaces.cli.support.progress import Advance, progress
from dedup_service.interfaces.cli.support.record_outputs import RecordOutput, check_with_input, open_verdicts
from dedup_service.interfaces.cli.support.resume import Deliveries, Progress, ProgressNotes
from dedup_service.interfaces.cli.support.stop_signals import Interrupt
from dedup_service.interfaces.cli.support.summary import Summary
from dedup_service.runtime.addresses import is_address, on_this_machine
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.events import Observers
from dedup_service.runtime.readers.open import InputOptions, InputSource
from dedup_service.runtime.readers.record import Record
from dedup_service.runtime.readers.several import expanded, open_sources

_DAY_MS = 86_400_000

_NOT_ASKED = frozenset({"as_json", "quiet", "processes", "max_memory", "dashboard", "dry_run"})
"""Options that change nothing of what is written: another run may go on with others."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """The VerdictSink of a run: writes its files, counts its verdicts, moves its bar, notes how far it came."""

    verdict_output: RecordOutput
    kept: KeptOutput | None
    archive: KeptArchive | None
    bad_records: BadRecords
    summary: Summary
    advance: Advance
    notes: ProgressNotes
    kept_verdicts: Collection[VerdictKind]

    def verdicts(self, decided: Sequence[DecidedRecord]) -> None:
        """Write a batch of verdicts, and the kept pages."""
        if self.kept is not None:
            self.kept.write([one for one in decided if one.verdict.kind in self.kept_verdicts])
        if self.archive is not None:
            self.archive.write(decided)
        self.verdict_output.write(decided)
        self.summary.count(one.verdict for one in decided)
        self.advance(len(decided))

    def bad(self, records: Sequence[tuple[Record, str]]) -> None:
        """Report a batch of bad records."""
        self.bad_records.report(records)
        self.summary.bad_records += len(records)
        self.advance(0)

    def reached(self, record: Record) -> None:
        """Note that all up to `record` is written."""
        self.notes.reached(record, self.summary, None if self.kept is None else self.kept.due, self.sync)

    def note(self) -> None:
        """Note how far the run came, before it ends early."""
        with suppress(OSError):  # then the last note stands
            self.notes.note(self.sync)

    def sync(self) -> None:
        """Bring what was written to the disk."""
        self.verdict_output.sync()
        self.bad_records.sync()
        if self.kept is not None:
            self.kept.sync()


_NOT_DUPLICATE = tuple(kind for kind in VerdictKind if kind is not VerdictKind.DUPLICATE)


def _parse_verdicts(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[VerdictKind, ...] | None:
    """Return the verdicts that a value names."""
    named = None if value is None else {one.strip() for one in value.split(",")}
    wrong = None if named is None else next((one for one in sorted(named) if one not in set(VerdictKind)), None)
    if wrong is not None:
        expected = ", ".join(VerdictKind)
        raise click.BadParameter(f"{wrong!r} is no verdict: give some of {expected}, with commas", context, parameter)
    return None if named is None else tuple(kind for kind in VerdictKind if kind in named)


@click.command("filter", cls=GroupedCommand, epilog="pages.jsonl --state state -o verdicts.jsonl --kept kept.jsonl")
@click.argument("sources", metavar="[FILE|FOLDER|ADDRESS|-]...", nargs=-1)
@click.option(
    "--output",
    "-o",
    metavar="FILE|-",
    default="-",
    help="Write one line of JSON for each page, or one row to a file .csv, .tsv or .parquet. [default: -, standard "
    "output]",
)
@click.option("--with-input", is_flag=True, help="Write each verdict beside the keys or columns of its record.")
@click.option(
    "--kept",
    metavar="FILE|FOLDER",
    help="Write each page that is not a duplicate, as it was read; or to .jsonl, .csv, .tsv or .parquet, what was "
    "extracted of it.",
)
@click.option(
    "--kept-verdicts",
    metavar="VERDICT,...",
    callback=_parse_verdicts,
    help="Write pages with these verdicts to --kept: unique,updated for what is new since the last run. "
    "[default: all but duplicate]",
)
@click.option(
    "--revisits",
    is_flag=True,
    help="With --kept FILE.warc.gz: instead of a page that is there already, write a revisit record; of any other "
    "page that is not kept, a metadata record; and the index FILE.cdxj.",
)
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
@with_options(BASES, PROFILE, KEEP, MAX_MEMORY, SPACE)
@with_options(PROCESSES, URL_PREFIX, COLUMNS, DASHBOARD)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Change nothing in --state; write a line of JSON to --output for each page whose verdict --profile changes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary on stderr as one line of JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Print no summary.")
def filter_command(sources: tuple[str, ...], **options: Any) -> int:
    """Give every page of files and folders a verdict.

    A verdict is unique, duplicate, unchanged, updated or undecided. The verdicts are written in input order.

    FILE is JSON lines (`url`, and `text` or `html`; optionally `id`, `title` and others), CSV (.csv, .tsv),
    both also packed with gzip or zstd, Parquet (.parquet), a WARC or a WET file (also .gz), or a page
    (.html). FOLDER has HTML files. ADDRESS is one of them in object storage or on the Web (s3://, https://).
    Without an argument, or with -, JSON lines are read from standard input. Several are read one after the
    other; a pattern in quotes ('crawl/**/*.jsonl', 's3://crawl/*.parquet') stands for what matches it, by
    name. With several, the path of a folder's file begins with the folder's name.

    The same command on the same state and the same files gives each record its earlier verdict again; in
    another file it is a further visit. After an interruption, it goes on where the run was, and completes
    its outputs.

    With --dry-run, no FILE is read: the pages of --state are decided again, from the first one on.
    """
    if options["dry_run"]:
        return dry_run()
    if options["keep_journal"] >= 0 and not options["state"]:
        raise click.UsageError("--keep-journal is for a state folder: give --state DIR, or leave it out")
    if options["revisits"] and not options["kept"]:
        raise click.UsageError("--revisits is for an archive of kept pages: give --kept FILE.warc.gz, or leave it out")
    if options["kept_verdicts"] and not options["kept"]:
        raise click.UsageError("--kept-verdicts is for kept pages: give --kept FILE, or leave it out")
    names = expanded(sources or ("-",))
    _check_files(sources, names, options)
    started = time.monotonic()
    summary = Summary()
    with Interrupt() as interrupt:
        space_id = _run(names, options, summary, interrupt)
    details = {"space": space_id, "seconds": round(time.monotonic() - started, 3)}
    if options["as_json"]:
        summary.print_json(**details, interrupted=interrupt.code is not None)
    elif not options["quiet"]:
        summary.print_table(**details)
    if summary.by_another_rule and not options["as_json"]:
        click.echo(
            f"twinsieve: {summary.by_another_rule:,} verdicts are those of an earlier run, by another rule than "
            "the one in force: to judge these records by it, give a new --state",
            err=True,
        )
    return interrupt.code or (ExitCode.BAD_RECORDS if summary.bad_records else ExitCode.DONE)


def _run(names: Sequence[str], options: dict[str, Any], summary: Summary, interrupt: Interrupt) -> str:
    """Decide the inputs and return the `space_id` of their fingerprints."""
    space = space_from(options)
    rule = rule_from(options)
    dashboard = embedded_dashboard(options, "filter")
    observers = () if dashboard is None else dashboard.observers
    with ExitStack() as stack:
        notes = _notes(names, options)
        earlier = notes.found()
        deliveries = Deliveries(notes.folder, names, notes.command)
        source = stack.enter_context(_opened(names, options, interrupt, earlier))
        preparer = stack.enter_context(preparer_from(options, space))  # first: it starts while the state is read
        dedup = NearDuplicateFilter.open(
            options["state"],
            space=space,
            rule=rule,
            keep=options["keep"],
            journal_days=options["keep_journal"] / _DAY_MS if options["keep_journal"] >= 0 else None,
            max_memory_bytes=options["max_memory"],
            observers=observers,
            bases=options["bases"],
        )
        stack.enter_context(dedup)
        summary.known, summary.rule_since = dedup.last_sequence, dedup.rule_since
        if options["keep"] is None and dedup.keep and not options["quiet"] and not options["as_json"]:
            click.echo(f"The state keeps {dedup.keep}, as it was told before: --keep changes it", err=True)
        if dashboard is not None:
            print_dashboard_url(stack.enter_context(dashboard.serving(dedup, preparer.pool_state)).address)
        if earlier is None:
            notes.begin()
        else:
            summary.restore(earlier.summary)
        deliveries.begin()
        advance = stack.enter_context(progress(source))
        outputs = _outputs(stack, source, names, options, (summary, advance, notes), earlier)
        try:
            run(source.records, preparer, dedup, outputs, interrupt.stopped, deliveries.of, Observers(observers))
        except BaseException:
            outputs.note()
            raise
        if interrupt.stopped():
            outputs.note()
        else:
            notes.end()
            deliveries.end()
        if outputs.archive is not None:
            summary.archived = outputs.archive.counts
        return dedup.space_id


def _opened(
    names: Sequence[str], options: dict[str, Any], interrupt: Interrupt, earlier: Progress | None
) -> AbstractContextManager[InputSource]:
    read = InputOptions(
        wait=interrupt.wait,
        url_prefix=options["url_prefix"],
        columns=options["columns"],
        whole=options["with_input"] or (bool(options["kept"]) and options["kept"].endswith(".parquet")),
    )
    if earlier is None:
        return open_sources(names, read)
    return open_sources(names, read, first=earlier.at, after={names[earlier.at]: earlier.mark})


def _notes(names: Sequence[str], options: dict[str, Any]) -> ProgressNotes:
    """Return the notes of this run: of one with a state, if all of its outputs are files that can be appended to.

    An archive with revisits begins anew: what it has is remembered while it is written.
    """
    written = {f"--{name}": options[name] for name in ("output", "kept", "errors") if options[name]}
    append = "-" not in written.values() and all(map(appends, written.values())) and not options["revisits"]
    asked = {name: str(value) for name, value in options.items() if name not in _NOT_ASKED}
    folder = Path(options["state"]) if options["state"] else None
    return ProgressNotes(folder, names, asked, written, notable=append)


def _outputs(
    stack: ExitStack,
    source: InputSource,
    names: Sequence[str],
    options: dict[str, Any],
    counts: tuple[Summary, Advance, ProgressNotes],
    earlier: Progress | None,
) -> Outputs:
    """Open the outputs, behind what an earlier run has written."""
    sizes, due = ({}, None) if earlier is None else (earlier.sizes, earlier.due)
    if options["with_input"]:
        check_with_input(options["output"], source.kind)  # before anything is emptied
    kept = archive = None
    kept_verdicts = options["kept_verdicts"] or _NOT_DUPLICATE
    if options["revisits"]:
        archive = stack.enter_context(KeptArchive(options["kept"], source.kind, kept_verdicts))
    elif options["kept"]:
        kept = open_kept(options["kept"], source.kind, names, keep=sizes.get("--kept", 0), due=due)
        stack.callback(kept.close)  # first: it may refuse the kind of input, and nothing is emptied yet
    verdicts = open_verdicts(
        options["output"], source.kind, names, with_input=options["with_input"], keep=sizes.get("--output", 0)
    )
    stack.callback(verdicts.close)
    bad_records = BadRecords(source.name, options["errors"], keep=sizes.get("--errors", 0))
    stack.callback(bad_records.close)
    return Outputs(verdicts, kept, archive, bad_records, *counts, kept_verdicts)


def _check_files(sources: Sequence[str], names: Sequence[str], options: dict[str, Any]) -> None:
    """Refuse two outputs in one file, one over an input, and files of the state. Standard input and output may be -.

    sources: the inputs as they were given; names: what they stand for.
    """
    outputs = {f"--{name}": options[name] for name in ("output", "kept", "errors")}
    if options["revisits"]:
        outputs["--revisits"] = index_name(options["kept"])
    check_local(**outputs)
    archive = options["kept"] if options["revisits"] else None
    check_writable(**{"--output": options["output"], "--errors": options["errors"], "--kept": archive})
    folders = [base for base in map(on_this_machine, options["bases"]) if not is_address(base)]
    for folder in (options["state"], *folders):
        check_outside(folder, **outputs)
    check_unmatched(sources, **outputs)
    for source in names:
        name = None if source == "-" else source
        check_distinct(**outputs, FILE=name)
        check_outside(options["state"], FILE=name)
