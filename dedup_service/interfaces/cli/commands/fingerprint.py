"""`twinsieve fingerprint`: print the fingerprints of texts, one line of JSON each."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import msgspec

from dedup_service.core.fingerprinter import Fingerprinter
from dedup_service.core.page import Page
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import SPACE, with_options
from dedup_service.runtime.resources import build_fingerprinter, space_of

URL = "text:"
"""Stands for the URL of a text: a page needs one, a fingerprint does not depend on it."""


@click.command("fingerprint", cls=GroupedCommand, epilog="'The ferry runs' --explain")
@click.argument("texts", metavar="TEXT…", nargs=-1)
@click.option(
    "--file",
    "files",
    metavar="FILE",
    multiple=True,
    help="Read a text from this UTF-8 file, or - for standard input; repeatable.",
)
@click.option("--title", metavar="TEXT", default="", help="Title of every text. [default: none]")
@click.option("--explain", is_flag=True, help="Add the features of the channel `words` with the largest weights.")
@with_options(SPACE)
def fingerprint_command(texts: tuple[str, ...], files: tuple[str, ...], **options: Any) -> None:
    """Print the fingerprints of texts.

    Each TEXT, and each --file, gives one line of JSON with `space` and the channels `words` and `body`. A
    fingerprint is a decimal integer, or null if the text has no features in that channel. It has 64 bits, or with
    `bits = 128` in the space file 128.
    """
    if not texts and not files:
        raise click.UsageError("no text is given: give a TEXT, or --file FILE")
    fingerprinter = build_fingerprinter(space_of(options["space"]))
    for text in (*texts, *_read(files)):
        page = Page(url=URL, canonical_url=URL, id=URL, title=options["title"], text=text)
        values = _values(fingerprinter, page, explain=options["explain"])
        click.echo(msgspec.json.encode(values).decode())


def _read(files: tuple[str, ...]) -> Iterator[str]:
    for name in files:
        try:
            raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
            yield raw.decode()
        except OSError as error:
            raise click.UsageError(f"cannot read {name}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise click.UsageError(f"{name} is not UTF-8: {error}") from None


def _values(fingerprinter: Fingerprinter, page: Page, *, explain: bool) -> Mapping[str, Any]:
    fingerprint = fingerprinter.fingerprint(page)
    # 128 bits exceed the integers that JSON libraries encode, so the digits are inserted as they are.
    values: dict[str, Any] = {
        "space": fingerprinter.space_id,
        "words": _number(fingerprint.words),
        "body": _number(fingerprint.body),
    }
    if explain:
        values["features"] = [asdict(feature) for feature in fingerprinter.explain(page)]
    return values


def _number(value: int | None) -> msgspec.Raw | None:
    return None if value is None else msgspec.Raw(str(value).encode())
