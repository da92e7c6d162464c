"""`twinsieve label`: ask a person about the pairs of a crawl that teach most.

Two passes over the pages: one finds the pairs and keeps no text, one fetches the texts of those that are asked about.
The choice depends on pages, profile, seed and --by alone, so a run that was left goes on with the next question.
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
from dedup_service.core.evaluation.active_sampling import informative_pairs
from dedup_service.core.evaluation.candidate_pairs import CandidatePairs
from dedup_service.core.page import Page
from dedup_service.core.rules.profiles import DEFAULT_PROFILE
from dedup_service.core.rules.rule import MatchRule
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.options import MATCHING, SPACE, space_of, with_options
from dedup_service.interfaces.cli.support.outputs import BadRecords, check_distinct
from dedup_service.interfaces.cli.support.page_stream import each_prepared
from dedup_service.runtime.labels import Label, LabelFile
from dedup_service.runtime.readers import open_source
from dedup_service.runtime.resources import build_fingerprinter, profile_named
from dedup_service.runtime.workers.preparation import BadRecord, Preparer, page_of

__all__ = ["label_command"]

LABELS = {"d": "dup", "n": "not", "g": "grey"}
KEYS = "d duplicate, n not, g grey (between the two), s skip, u undo, q quit"
PROFILE = MATCHING[0]


@dataclass(frozen=True, slots=True)
class Question:
    """Two pages by their numbers in the input and by their ids."""

    numbers: tuple[int, int]
    ids: tuple[str, str]


@click.command("label", epilog=EPILOG)
@click.argument("pages", metavar="PAGES")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    default="labels.jsonl",
    show_default=True,
    help="Gets a line of JSON an answer; what it holds is not asked again.",
)
@click.option("--max-pairs", type=click.IntRange(1), default=50, show_default=True, help="Pairs to choose.")
@click.option(
    "--seed", type=click.IntRange(0), default=7, show_default=True, help="Orders what is equally informative."
)
@click.option(
    "--sample",
    type=click.Choice(["uncertain", "random"]),
    default="uncertain",
    show_default=True,
    help="Pairs that the profile is least sure of, to choose by; or any, to report on.",
)
@with_options(PROFILE, *SPACE)
@click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="That prepare pages.")
def label_command(pages: str, **options: Any) -> int:
    """Show the pairs of PAGES that teach most side by side, and store what you say of them.

    Keys: d duplicate, n not, g grey (between the two), s skip, u undo, q quit. Each answer is stored at once, as
    {"a", "b", "label"}, which `evaluate` and `calibrate` read. The same command goes on where it was left. Without a
    terminal, keys are read from standard input, one character each.
    """
    if pages == "-":
        raise click.UsageError("standard input is for the answers: name a file or folder for PAGES")
    check_distinct(PAGES=pages, **{"--output": options["output"]})
    rule, bad = profile_named(options["profile"] or DEFAULT_PROFILE), BadRecords(pages, None)
    with LabelFile(Path(options["output"])) as file:
        chosen = _questions(pages, rule, options, bad)
        answered = {frozenset((label.a, label.b)) for label in file.labels}
        questions = [question for question in chosen if frozenset(question.ids) not in answered]
        if len(questions) < len(chosen):
            click.echo(f"{len(chosen) - len(questions)} of {len(chosen)} pairs are answered already.")
        if not questions:
            click.echo(
                f"Nothing to ask: {pages} has no further pairs near the border. A larger --max-pairs finds more."
            )
        else:
            _ask_all(questions, _pages(pages, questions), file, options["sample"])
        _tell(file)
    return ExitCode.BAD_RECORDS if bad.count else ExitCode.DONE


def _questions(pages: str, rule: MatchRule, options: Mapping[str, Any], bad: BadRecords) -> list[Question]:
    """Return the pairs to ask about. Of two pages with one id the first is looked at, as `evaluate` does."""
    choice = space_of(options)
    build_fingerprinter(choice)
    by_chance = options["sample"] == "random"
    candidates = CandidatePairs(rule, nearest=not by_chance)
    seen: dict[str, int] = {}
    with Preparer(choice, options["processes"], keep_text=False) as preparer:
        for record, prepared in each_prepared(pages, preparer, bad):
            if prepared.page.id not in seen:
                seen[prepared.page.id] = record.number
                candidates.add(prepared)
    ids, numbers = list(seen), list(seen.values())
    found = informative_pairs(
        candidates.pairs, candidates.groups, options["max_pairs"], options["seed"], at_random=by_chance
    )
    return [Question((numbers[pair.a], numbers[pair.b]), (ids[pair.a], ids[pair.b])) for pair in found]


def _pages(name: str, questions: Sequence[Question]) -> dict[int, Page]:
    """Return the pages of the questions by number, with their texts; ConfigurationError where the input changed."""
    wanted = dict(place for question in questions for place in zip(question.numbers, question.ids, strict=True))
    found: dict[int, Page] = {}
    with open_source(name) as source:
        for record in source.records:
            if record is None or record.number not in wanted:
                continue
            page = page_of(record)
            if isinstance(page, BadRecord) or page.id != wanted[record.number]:
                raise ConfigurationError(f"{name}, {record.place}: was another page a moment ago; do not change it")
            found[record.number] = page
            if len(found) == len(wanted):
                return found
    raise ConfigurationError(f"{name} became shorter while it was read; do not change it")


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
    """Ask until a key means something."""
    while True:
        click.echo(f"{KEYS}: ", nl=False)
        answer = key().lower()
        click.echo(answer if answer.isprintable() else "")
        if answer == "u" and not may_undo:
            click.echo("Nothing to undo: this is the first pair of this run.")
        elif answer in {*LABELS, "s", "u", "q"}:
            return answer


def _keyboard() -> Callable[[], str]:
    """Return what gives the next key: without Enter on a terminal, else the next character of standard input."""
    return click.getchar if sys.stdin.isatty() else _piped


def _piped() -> str:
    """The next character that is not blank; q at the end of the input."""
    try:
        while (character := sys.stdin.read(1)).isspace():
            pass
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"standard input gives keys, not bytes that are no text: {error}") from error
    return character or "q"


def _tell(file: LabelFile) -> None:
    """Say what the file holds now."""
    counts = Counter(label.label for label in file.labels)
    total = sum(counts.values())
    parts = [f"{counts[label]} {name}" for label, name in (("dup", "duplicates"), ("not", "not"), ("grey", "grey"))]
    click.echo(f"{total} pairs are labelled: {', '.join(parts)}.")
