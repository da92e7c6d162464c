"""The `twinsieve` command: a table of subcommands, each imported when it is called.

`--help` answers from the table alone, so it needs neither numpy nor numba.
Invariant: whatever goes wrong on purpose (`TwinsieveError`, a full disk, a closed pipe) ends in one line
on stderr and a documented exit code, never in a traceback.
"""

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode

__all__ = ["COMMANDS", "LazyGroup", "main", "twinsieve"]

COMMANDS = {
    "calibrate": (
        "dedup_service.interfaces.cli.calibration.calibrate:calibrate_command",
        "Choose thresholds on labelled pairs.",
    ),
    "correct": (
        "dedup_service.interfaces.cli.commands.corrections:correct_command",
        "Say what pages are to each other.",
    ),
    "corrections": (
        "dedup_service.interfaces.cli.commands.corrections:corrections_command",
        "List what people said of pairs of pages.",
    ),
    "crawl": ("crawler.cli:crawl_command", "Crawl sites and keep each article once."),
    "demo": ("crawler.cli:demo_command", "Crawl a small news site of our own and show what was found."),
    "evaluate": (
        "dedup_service.interfaces.cli.calibration.evaluate:evaluate_command",
        "Say how good the verdicts on known pages are.",
    ),
    "filter": ("dedup_service.interfaces.cli.commands.filter:filter_command", "Give every page of files a verdict."),
    "fingerprint": (
        "dedup_service.interfaces.cli.commands.fingerprint:fingerprint_command",
        "Print the fingerprints of texts.",
    ),
    "idf": ("dedup_service.interfaces.cli.commands.idf:idf_group", "Make a table of how rare words are."),
    "label": (
        "dedup_service.interfaces.cli.calibration.label:label_command",
        "Ask a person about the pairs that teach most.",
    ),
    "pairs": ("dedup_service.interfaces.cli.commands.pairs:pairs_command", "Compare the pages of given pairs."),
    "policy": ("dedup_service.interfaces.cli.commands.policy:policy_group", "Show or change what decides."),
    "replay": (
        "dedup_service.interfaces.cli.commands.replay:replay_command",
        "Decide a service's log anew, otherwise.",
    ),
    "retract": ("dedup_service.interfaces.cli.commands.retract:retract_command", "Take kept pages out."),
    "serve": (
        "dedup_service.interfaces.cli.commands.serve:serve_command",
        "Give every page of a Kafka topic a verdict.",
    ),
    "state": ("dedup_service.interfaces.cli.commands.state:state_group", "Look at a state folder."),
    "topics": (
        "dedup_service.interfaces.cli.commands.topics:topics_group",
        "Make the topics of the service, and check them.",
    ),
    "why": ("dedup_service.interfaces.cli.commands.why:why_command", "Tell why a page has its verdict."),
}
"""Name → where the command lives, and what `--help` says of it."""


_KAFKA, _HTTP, _SCRAPY = ("kafka", "the Kafka client"), ("dashboard", "the HTTP server"), ("scrapy", "Scrapy")
EXTRAS = {
    "kafka": _KAFKA,
    "matplotlib": ("plots", "matplotlib"),
    "prometheus_client": _HTTP,
    "scrapy": _SCRAPY,
    "starlette": _HTTP,
    "twisted": _SCRAPY,
    "uvicorn": _HTTP,
}
"""Module that may be missing → the extra that brings it, and what it is."""


class LazyGroup(click.Group):
    """A group that imports a subcommand only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return `cmd_name`, or None where the table has no such name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="twinsieve", prog_name="twinsieve")
def twinsieve() -> None:
    """Find near-duplicate pages before anything stores them: pages in, verdicts out."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line as this process's only work, and exit with a documented code.

    Loading the tables makes hundreds of thousands of objects, hardly one of them in a cycle: a collector that
    looks at them less often, and not once more at the end, saves 0.6 of 2.2 s of a run over one page.
    """
    gc.set_threshold(100_000, 50, 50)
    code = run(arguments)
    gc.freeze()
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on `arguments` (those of the process by default) and return the exit code."""
    try:
        code = twinsieve.main(arguments, prog_name="twinsieve", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return ExitCode.INTERRUPTED
    except SystemExit:  # click's answer to a closed pipe, whoever wrote into it
        _silence_stdout()
        return ExitCode.PIPE_CLOSED
    except (TwinsieveError, OSError, ModuleNotFoundError) as error:
        click.echo(f"twinsieve: {_message(error)}", err=True)
        return _code(error)
    return code if isinstance(code, int) else ExitCode.DONE


def _code(error: TwinsieveError | OSError | ModuleNotFoundError) -> ExitCode:
    """Return whose fault it is, as far as a code can tell: the command's, the broker's, or something else's."""
    from dedup_service.runtime.kafka.client.errors import BrokerError

    if isinstance(error, ConfigurationError | ModuleNotFoundError):
        return ExitCode.USAGE
    return ExitCode.UNAVAILABLE if isinstance(error, BrokerError) and error.retryable else ExitCode.FAILED


def _message(error: TwinsieveError | OSError | ModuleNotFoundError) -> str:
    """Say in one line what went wrong; a missing module that no extra would bring is raised again."""
    if isinstance(error, OSError):
        return f"{error.filename or 'input or output'}: {error.strerror or error}"
    if not isinstance(error, ModuleNotFoundError):
        return str(error)
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        raise error
    extra, what = EXTRAS[module]
    return f"this command needs {what}: pip install 'twinsieve[{extra}]'"


def _silence_stdout() -> None:
    """Give the interpreter a stdout that it can flush at exit, now that its reader is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
