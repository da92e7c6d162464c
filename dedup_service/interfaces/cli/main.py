"""The `twinsieve` command: a table of subcommands, each imported by name when it is called.

`--help` is answered from the table alone. `crawl` and `demo` are in `twinsieve_crawler.cli`, a layer above this one:
their modules are loaded at run time only.
Invariant: every expected failure (`TwinsieveError`, a full disk, a closed pipe) ends with one line on
stderr and a documented exit code, never with a traceback.
"""

import errno
import gc
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.stop_signals import kill_at_second

_CLI = "dedup_service.interfaces.cli"

COMMANDS = {
    "backfill": (f"{_CLI}.commands.backfill:backfill_command", "Add the pages of files to a running service."),
    "calibrate": (f"{_CLI}.calibration.calibrate:calibrate_command", "Choose thresholds on labelled pairs."),
    "correct": (f"{_CLI}.commands.corrections:correct_command", "Mark two pages as duplicates or not."),
    "corrections": (f"{_CLI}.commands.corrections:corrections_command", "List or export corrections."),
    "crawl": ("twinsieve_crawler.cli:crawl_command", "Crawl sites and keep each article once."),
    "dead-letters": (f"{_CLI}.commands.dead_letters:dead_letters_group", "List or republish a service's dead letters."),
    "demo": ("twinsieve_crawler.cli:demo_command", "Crawl a small demo site and check every verdict."),
    "evaluate": (f"{_CLI}.calibration.evaluate:evaluate_command", "Measure precision and recall on known pages."),
    "filter": (f"{_CLI}.commands.filter:filter_command", "Give every page of files and folders a verdict."),
    "fingerprint": (f"{_CLI}.commands.fingerprint:fingerprint_command", "Print the fingerprints of texts."),
    "groups": (f"{_CLI}.commands.groups:groups_command", "List each kept page with its copies."),
    "idf": (f"{_CLI}.commands.idf:idf_group", "Build a table of word frequencies (IDF)."),
    "label": (f"{_CLI}.calibration.label:label_command", "Label pairs of pages by hand, for calibration."),
    "pairs": (f"{_CLI}.commands.pairs:pairs_command", "Compare given pairs of pages."),
    "policy": (f"{_CLI}.commands.policy:policy_group", "Show or change the rule and the action of a log."),
    "replay": (f"{_CLI}.commands.replay:replay_command", "Replay a service's log, also under another policy."),
    "retract": (f"{_CLI}.commands.retract:retract_command", "Remove kept pages from the index."),
    "serve": (f"{_CLI}.commands.serve:serve_command", "Give every page of a Kafka topic a verdict."),
    "shard": (f"{_CLI}.commands.shard:shard_group", "Copy a shard to another number of shards."),
    "state": (f"{_CLI}.commands.state:state_group", "Inspect or compact a state folder."),
    "topics": (f"{_CLI}.commands.topics:topics_group", "Create, check and repair the topics of a service."),
    "why": (f"{_CLI}.commands.why:why_command", "Explain the verdict on a page."),
}
"""Command name → (module:attribute, one-line help)."""

_KAFKA, _HTTP, _SCRAPY = ("kafka", "the Kafka client"), ("dashboard", "the HTTP server"), ("scrapy", "Scrapy")
EXTRAS = {
    "kafka": _KAFKA,
    "matplotlib": ("plots", "matplotlib"),
    "numpy": ("evaluation", "numpy"),
    "opencc": _SCRAPY,
    "prometheus_client": _HTTP,
    "scrapy": _SCRAPY,
    "starlette": _HTTP,
    "twisted": _SCRAPY,
    "uvicorn": _HTTP,
}
"""Optional module → (the extra that installs it, what it is)."""


class LazyGroup(click.Group):
    """A group that imports a subcommand only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return the command `cmd_name`, or None if the table does not have it."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="twinsieve", prog_name="twinsieve")
def twinsieve() -> None:
    """Detect near-duplicate pages before they are stored: pages in, verdicts out."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line as the only work of this process, and exit with a documented code.

    Loading the tables creates hundreds of thousands of objects, almost none of them in a cycle. Collecting
    less often, and not once more at exit, saves 0.6 of 2.2 s of a run over one page. The youngest are collected more
    often than the others, and so in shorter stops: all of 100,000 took 130 ms of a page's way through `serve`.
    """
    gc.set_threshold(10_000, 10, 50)
    _fill_closed_streams()
    kill_at_second([signal.SIGINT])  # commands that handle signals set their own handlers
    code = run(arguments)
    gc.freeze()
    sys.exit(code)


def _fill_closed_streams() -> None:
    """Open in place of each closed standard stream one that fails if it is used; messages on stderr are lost.

    Python has None for a closed stream, and its descriptor would go to the next file that is opened.
    """
    for name, mode, flags in (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on `arguments` (by default those of the process) and return the exit code."""
    try:
        code = twinsieve.main(arguments, prog_name="twinsieve", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return ExitCode.INTERRUPTED
    except SystemExit:  # click's reaction to a closed pipe, wherever it was written to
        _silence_stdout()
        return ExitCode.PIPE_CLOSED
    except (TwinsieveError, OSError, ModuleNotFoundError) as error:
        if isinstance(error, OSError) and error.errno == errno.EBADF:  # what is left would fail again at exit
            _silence_stdout()
        click.echo(f"twinsieve: {_message(error)}", err=True)
        return _code(error)
    return code if isinstance(code, int) else ExitCode.DONE


def _code(error: TwinsieveError | OSError | ModuleNotFoundError) -> ExitCode:
    """Return the exit code by the cause of the error: the command line, the brokers, or another."""
    from dedup_service.runtime.kafka.client.errors import BrokerError

    if isinstance(error, ConfigurationError | ModuleNotFoundError):
        return ExitCode.USAGE
    return ExitCode.UNAVAILABLE if isinstance(error, BrokerError) and error.retryable else ExitCode.FAILED


def _message(error: TwinsieveError | OSError | ModuleNotFoundError) -> str:
    """Return one line on what went wrong; a missing module that no extra installs is raised again."""
    if isinstance(error, OSError):
        return f"{error.filename or 'input or output'}: {error.strerror or error}"
    if not isinstance(error, ModuleNotFoundError):
        return str(error)
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        raise error
    extra, what = EXTRAS[module]
    return f"this command needs {what}: pip install 'twinsieve[{extra}]'; from a checkout: pip install '.[{extra}]'"


def _silence_stdout() -> None:
    """Replace the closed stdout by one that the interpreter can flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
