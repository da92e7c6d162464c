"""Commands and names of settings in the documents are those that there are."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dedup_service.interfaces.cli.main import twinsieve
from dedup_service.interfaces.scrapy.settings import NAMES
from docs.made import FOLDER, PARTS, page

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md"), *ROOT.glob("*.md")
    ]
)  # fmt: skip
TOOLS = [*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "tests").glob("*/__main__.py")]
OTHERS = {"--build-arg", "--command-config", "--segmenter"} | {
    option for tool in TOOLS for option in re.findall('add_argument\\(\\s*"(--[a-z-]+)"', tool.read_text("utf-8"))
}
"""Options of other programs, and of benchmarks and tests, which documents mention alone."""

OF_KAFKA = {"--add", "--add-config", "--allow-principal", "--alter", "--cluster", "--operation", "--topic"} | {
    "--transactional-id"
}

_FENCE = re.compile(r"^```.*?\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^(?:\$ )?(?:\w+=\S+ )*(?:\S*/)?twinsieve (.*)")
_END = re.compile(r"(?:[|;&<>]|\d?>).*|#")


def command_of(words: list[str]) -> tuple[click.Command, list[str]] | None:
    """Return the command that `words` begin with, and its arguments, or None if there is none."""
    command: click.Command = twinsieve
    while isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            return None
        command, words = found, words[1:]
    return (command, words) if not isinstance(command, click.Group) else None


def blocks(text: str) -> Iterator[list[str]]:
    """Yield the words after `twinsieve` of each command in the code blocks of `text`."""
    for block in _FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if (found := _COMMAND.match(line.strip())) is not None:
                words = shlex.split(found[1], comments=True)
                end = next((at for at, word in enumerate(words) if _END.fullmatch(word)), len(words))
                yield words[:end]


def mentions(text: str) -> Iterator[list[str]]:
    """Yield the words of each code in a line of `text` that names an option."""
    for code in re.findall(r"`([^`\n]*(?:\n[^`\n]+)?)`", _FENCE.sub("", text)):
        words = [word for word in code.split() if word != "…"]
        if any(word.startswith("--") for word in words):
            yield words[1:] if words[0] == "twinsieve" else words


def options(command: click.Command) -> set[str]:
    """Return the options of a command, and of all commands of a group."""
    found = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help", "-h"}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            if (below := command.get_command(context, name)) is not None:
                found |= options(below)
    return found


EVERY_OPTION = options(twinsieve)
PROGRAM = click.Context(twinsieve, **twinsieve.context_settings)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_are_accepted(document: str) -> None:
    """Each command of a code block has the options and values that it takes; each mention, options that there are."""
    text = (ROOT / document).read_text("utf-8")
    wrong = []
    for words in blocks(text):
        found = command_of(words)
        if found is None or found[1][:1] == ["--help"]:
            continue
        try:
            found[0].make_context(found[0].name, [*found[1]], parent=PROGRAM).close()
        except click.UsageError as error:
            wrong.append((" ".join(words), error.format_message()))
    for words in mentions(text):
        found = command_of(words)
        known = EVERY_OPTION | OTHERS if found is None else options(found[0])
        given = {word.partition("=")[0].rstrip(",.:;)") for word in words if re.match("--[a-z]", word)}
        if (found is not None or words[0].startswith("--")) and given - known:
            wrong.append((" ".join(words), f"no option {', '.join(sorted(given - known))}"))
    assert wrong == []


def test_messages_name_options_that_there_are() -> None:
    """An option in a text of the code is one of `twinsieve`, or of a tool of Kafka or zstd."""
    files = [path for folder in ("dedup_service", "crawler") for path in (ROOT / folder).rglob("*.py")]
    named = {name for path in files for name in re.findall(r"(?<![-\w])--[a-z][a-z-]+", path.read_text("utf-8"))}
    assert named - EVERY_OPTION - OTHERS - OF_KAFKA == {"--long"}


def test_settings_and_variables_exist() -> None:
    """Each `TWINSIEVE_…` of a document is a setting of Scrapy, or a variable that some code reads."""
    code = [*(path for folder in ("dedup_service", "deploy", "tests") for path in (ROOT / folder).rglob("*.py"))]
    known = NAMES | {name for path in code for name in re.findall(r"TWINSIEVE_\w*[A-Z]", path.read_text("utf-8"))}
    named = {
        name
        for document in DOCUMENTS
        if "/adr/" not in document
        for name in re.findall(r"TWINSIEVE_\w*[A-Z]\b", (ROOT / document).read_text("utf-8"))
    }
    assert named - known == set()


@pytest.mark.parametrize("name", PARTS)
def test_what_is_made_from_the_code_is_current(name: str) -> None:
    """`python -m docs.made` has nothing to write."""
    assert (FOLDER / name).read_text("utf-8") == page(name)
