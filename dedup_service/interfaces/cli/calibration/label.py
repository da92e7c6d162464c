"""`twinsieve label`: show a person the most informative pairs of a crawl, and store the labels.

How: a first pass over the pages finds the pairs and keeps no texts; a second one reads the texts of those
pairs.
Invariant: the pairs depend only on the pages, the profile and --sample, so a run that was left
continues with the next pair.
"""

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evaluation.active_sampling import CandidatePairs, informative_pairs
from dedup_service.core.page import Page
from dedup_service.core.rules.profiles import DEFAULT_PROFILE
from dedup_service.core.rules.rule import MatchRule
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import PROFILE, SPACE, preparer_from, space_from, with_options
from dedup_service.interfaces.cli.support.outputs import BadRecords, check_distinct
from dedup_service.interfaces.cli.support.page_stream import iter_prepared
from dedup_service.runtime.labels import Label, LabelFile
from dedup_service.runtime.readers.open import open_source
from dedup_service.runtime.resources import build_fingerprinter, profile_named
from dedup_service.runtime.workers.preparation import BadRecord

LABELS = {"d": "dup", "n": "not", "g": "grey"}
SEED = 7
"""Orders pairs that are equally informative."""

KEYS = "d duplicate, n not, g grey (in between), s skip, u undo, q quit"


@dataclass(frozen=True, slots=True)
class Question:
    """A pair of pages to label. numbers: of their records in the input; ids: of the pages."""

    numbers: tuple[int, int]
    ids: tuple[str, str]


@click.command("label", cls=GroupedCommand, epilog="pages.jsonl -o labels.jsonl --max-pairs 100")
@click.argument("pages", metavar="PAGES")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    default="labels.jsonl",
    show_default=True,
    help="Append one line of JSON for each answer; pairs in this file are not shown again.",
)
@click.option(
    "--max-pairs", metavar="N", type=click.IntRange(1), default=50, show_default=True, help="Number of pairs to choose."
)
@click.option(
    "--sample",
    type=click.Choice(["uncertain", "random"]),
    default="uncertain",
    show_default=True,
    help="Choose pairs near the thresholds of the profile, to calibrate on, or random pairs, to report on.",
)
@with_options(PROFILE, SPACE)
def label_command(pages: str, **options: Any) -> int:
    """Show pairs of pages side by side, and store your labels.

    PAGES is a file or folder, as `filter` reads it.

    Keys: d duplicate, n not a duplicate, g grey (in between), s skip, u undo, q quit. Each answer is stored
    at once, as `{"a", "b", "label"}`, which `evaluate` and `calibrate` read. The same command continues
    where it was left. Without a terminal, keys are read from standard input, one character each.
    """
    if pages == "-":
        raise click.UsageError("standard input has the answers: name a file or folder as PAGES")
    check_distinct(PAGES=pages, **{"--output": options["output"]})
    rule, bad = profile_named(options["profile"] or DEFAULT_PROFILE), BadRecords(pages, None)
    with LabelFile(Path(options["output"])) as file:
        pairs = _questions(pages, rule, options, bad)
        answered = {frozenset((label.a, label.b)) for label in file.labels}
        questions = [question for question in pairs if frozenset(question.ids) not in answered]
        if len(questions) < len(pairs):
            click.echo(f"{len(pairs) - len(questions)} of {len(pairs)} pairs already have a label.")
        if not questions:
            click.echo(
                f"Nothing to label: {pages} has no further pairs near the thresholds. A larger --max-pairs finds more."
            )
        else:
            _ask_all(questions, _pages(pages, questions, options), file, options["sample"])
        _print_counts(file)
    return ExitCode.BAD_RECORDS if bad.count else ExitCode.DONE


def _questions(pages: str, rule: MatchRule, options: Mapping[str, Any], bad: BadRecords) -> list[Question]:
    """Return the pairs to label. Of two pages with the same id the first one is used, as `evaluate` does."""
    space = space_from(options)
    build_fingerprinter(space)
    random = options["sample"] == "random"
    candidates = CandidatePairs(rule, nearest=not random)
    seen: dict[str, int] = {}
    with preparer_from(options, space, keep_text=False) as preparer:
        for record, prepared in iter_prepared(pages, preparer, bad):
            if prepared.page.id not in seen:
                seen[prepared.page.id] = record.number
                candidates.add(prepared)
    ids, numbers = list(seen), list(seen.values())
    found = informative_pairs(candidates.pairs, candidates.groups, options["max_pairs"], SEED, at_random=random)
    return [Question((numbers[pair.a], numbers[pair.b]), (ids[pair.a], ids[pair.b])) for pair in found]


def _pages(name: str, questions: Sequence[Question], options: Mapping[str, Any]) -> dict[int, Page]:
    """Return the pages to show, by number. Raises ConfigurationError if the input changed meanwhile."""
    ids = dict(place for question in questions for place in zip(question.numbers, question.ids, strict=True))
    found: dict[int, Page] = {}
    with open_source(name) as source, preparer_from(options, space_from(options)) as preparer:
        for record in source.records:
            if record is None or record.number not in ids:
                continue
            page = preparer.page_of(record)
            if isinstance(page, BadRecord) or page.id != ids[record.number]:
                raise ConfigurationError(
                    f"{name}, {record.place}: the input changed between two passes; run the same command again"
                )
            found[record.number] = page
            if len(found) == len(ids):
                return found
    raise ConfigurationError(f"{name} became shorter between two passes; run the same command again")


def _ask_all(questions: Sequence[Question], pages: Mapping[int, Page], file: LabelFile, kind: str) -> None:
    from rich.console import Console

    from dedup_service.interfaces.cli.support.side_by_side import show_pair

    console, key = Console(), _keyboard()
    stored: list[bool] = []
    while len(stored) < len(questions):
        question = questions[len(stored)]
        left, right = (pages[number] for number in question.numbers)
        show_pair(console, f"pair {len(stored) + 1} of {len(questions)}", left, right)
        answer = _answer(key, may_undo=bool(stored))
        if answer == "q":
            return
        if answer == "u":
            if stored.pop():
                file.take_back()
            continue
        if answer in LABELS:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            file.append(Label(*question.ids, LABELS[answer], kind=kind, at=now))
        stored.append(answer in LABELS)


def _answer(key: Callable[[], str], *, may_undo: bool) -> str:
    """Ask until a valid key is pressed."""
    while True:
        click.echo(f"{KEYS}: ", nl=False)
        answer = key().lower()
        click.echo(answer if answer.isprintable() else "")
        if answer == "u" and not may_undo:
            click.echo("Nothing to undo: this is the first pair of this run.")
        elif answer in {*LABELS, "s", "u", "q"}:
            return answer


def _keyboard() -> Callable[[], str]:
    """Return a function for the next key: without Enter on a terminal, otherwise from standard input."""
    return click.getchar if sys.stdin.isatty() else _piped


def _piped() -> str:
    """Return the next character that is not white space, or q at the end of the input."""
    try:
        while (character := sys.stdin.read(1)).isspace():
            pass
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"standard input has bytes that are not text; give keys: {error}") from error
    return character or "q"


def _print_counts(file: LabelFile) -> None:
    """Print how many pairs of each label the file has."""
    counts = Counter(label.label for label in file.labels)
    total = sum(counts.values())
    parts = [f"{counts[label]} {name}" for label, name in (("dup", "duplicates"), ("not", "not"), ("grey", "grey"))]
    click.echo(f"{total} pairs are labelled: {', '.join(parts)}.")
