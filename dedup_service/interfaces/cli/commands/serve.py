"""`twinsieve serve`: run one process of the Kafka service until it receives a signal."""

import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dedup_service.core.shards.shard import ShardNumber
from dedup_service.core.verdict import Action
from dedup_service.interfaces.cli.support.dashboard_options import DASHBOARD, dashboard_from
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.logs import LOG_OPTIONS, ServiceLog, configure_logging
from dedup_service.interfaces.cli.support.options import (
    BROKER,
    KEEP,
    MAX_MEMORY,
    OUTPUTS,
    PROFILE,
    SERVED_BASES,
    SERVICE_PROCESSES,
    SPACE,
    bases_from,
    connection_from,
    rule_from,
    space_from,
    with_options,
)
from dedup_service.interfaces.cli.support.progress import RestoreBar
from dedup_service.interfaces.cli.support.step_options import BOTH, refuse_unused_options
from dedup_service.interfaces.cli.support.stop_signals import StopSignals
from dedup_service.runtime.events import Observer
from dedup_service.runtime.kafka.service import CANONICAL, DECIDE, FINGERPRINT, SHARD, Service, ServiceSettings
from dedup_service.runtime.kafka.steps.dead_letter_limit import RejectionLimit
from dedup_service.runtime.kafka.topics import OutputMode

if TYPE_CHECKING:
    from dedup_service.interfaces.http.service import Addresses

_LOG = logging.getLogger(__name__)

STEPS = {
    BOTH: frozenset({FINGERPRINT, DECIDE}),
    FINGERPRINT: frozenset({FINGERPRINT}),
    DECIDE: frozenset({DECIDE}),
    SHARD: frozenset({SHARD}),
    CANONICAL: frozenset({CANONICAL}),
}
DEFAULTS = {name: field.default for name, field in ServiceSettings.__dataclass_fields__.items()}


WORK = (
    click.option(
        "--group",
        metavar="NAME",
        default=DEFAULTS["group"],
        show_default=True,
        help="Consumer group; all processes of a service share it.",
    ),
    click.option(
        "--state",
        metavar="DIR",
        required=True,
        help="State folder of this process alone: its name in the groups, and snapshots.",
    ),
    click.option(
        "--steps",
        type=click.Choice(list(STEPS)),
        default=BOTH,
        show_default=True,
        help="Steps that this process runs. `shard` has a part of the index; with --shards, `decide` asks the shards. "
        "`canonical` writes which page stands for each group; run one process of it.",
    ),
    click.option(
        "--shard",
        metavar="I/S",
        help="Which shard this process is, counted from 1, as in 1/4. For --steps shard. Any number of processes may "
        "be the same shard, each with its own --state.",
    ),
    click.option(
        "--shards",
        type=click.Choice(["1", "2", "4", "8", "16", "32", "64"]),
        metavar="S",
        help="Decide with what S shards answer, instead of an index in this process. For --steps decide.",
    ),
    click.option(
        "--verify",
        is_flag=True,
        help="Compare the answers of all replicas of a shard, and stop if two differ. With --shards.",
    ),
    click.option(
        "--answer-all",
        is_flag=True,
        help="Answer from the --state on, also to what was answered before. For --steps shard, if answers were lost.",
    ),
    OUTPUTS,
    click.option(
        "--instance", metavar="NAME", help="Name of this process in its groups. [default: a name stored in --state]"
    ),
    click.option(
        "--action",
        type=click.Choice([action.value for action in Action]),
        help="What happens to duplicates; `drop` writes them to no topic. "
        "[default: that of the log; flag for a new log]",
    ),
)
BOUNDS = (
    SERVICE_PROCESSES,
    click.option(
        "--max-rejected-share",
        type=click.FloatRange(0, 1, min_open=True),
        default=RejectionLimit().share,
        show_default=True,
        metavar="SHARE",
        help="Stop if a larger share of the recent records is rejected as dead letters; 1 never stops.",
    ),
    click.option(
        "--drain-s",
        metavar="SECONDS",
        type=click.FloatRange(0),
        default=DEFAULTS["drain_s"],
        show_default=True,
        help="Time to finish the pages in flight after SIGTERM or Ctrl-C.",
    ),
)
HTTP = (
    click.option(
        "--http",
        metavar="[HOST:]PORT",
        help="Serve /startupz, /livez, /readyz and /metrics, and the dashboard on loopback or with a token. "
        "[default: none; default host: loopback]",
    ),
    DASHBOARD,
)


@click.command("serve", cls=GroupedCommand, epilog="--bootstrap kafka:9092 --state /var/lib/twinsieve --http 8080")
@with_options(*BROKER, *WORK, PROFILE, KEEP, SERVED_BASES, MAX_MEMORY, SPACE, *BOUNDS, *HTTP, *LOG_OPTIONS)
def serve_command(**options: Any) -> int:
    """Give every page of the topic `pages` a verdict, exactly once, also after a crash.

    Reads `pages`; writes `verdicts`, and the pages themselves to `pages.unique` or `pages.duplicate`. With `--outputs
    verdicts` they stay in `pages`, where each verdict says.
    Create the topics first, with `twinsieve topics create`. Start any number of processes with the same
    --group, each with its own --state: their verdicts are those of a single process.

    The first SIGTERM or Ctrl-C finishes the pages in flight, within --drain-s, and stops. The second stops
    at once. Either way, no page is lost and no output is written twice.
    """
    settings = settings_of(options)
    addresses = _addresses(options)
    configure_logging(options["log_level"], options["log_format"])
    _LOG.info("starting", extra={"facts": _log_fields(settings)})
    with ExitStack() as stack:
        log = ServiceLog(restores=not sys.stderr.isatty())
        stack.callback(log.close)
        observers: list[Observer] = [log]
        if sys.stderr.isatty():
            observers.append(stack.enter_context(RestoreBar()))
        service, announce_stop = _served(settings, observers, addresses, stack)

        def on_stop(number: signal.Signals) -> None:
            announce_stop()
            fields = {"signal": number.name, "within_s": settings.drain_s}
            _LOG.info("stopping; a second signal ends the process at once", extra={"facts": fields})

        signals = stack.enter_context(StopSignals(on_stop))
        service.run(signals.stop)
    _LOG.info("stopped")
    return signals.code or ExitCode.DONE


def settings_of(options: dict[str, Any]) -> ServiceSettings:
    """Return the service settings that the options name. UsageError for those that the steps do not use."""
    refuse_unused_options(click.get_current_context())
    return ServiceSettings(
        connection=connection_from(options),
        state=Path(options["state"]),
        group=options["group"],
        prefix=options["prefix"],
        steps=STEPS[options["steps"]],
        instance=options["instance"],
        space=space_from(options),
        rule=rule_from(options),
        action=None if options["action"] is None else Action(options["action"]),
        keep=options["keep"],
        processes=options["processes"],
        rejection_limit=RejectionLimit(share=options["max_rejected_share"]),
        drain_s=options["drain_s"],
        max_memory_bytes=options["max_memory"],
        outputs=OutputMode(options["outputs"]),
        shard=_shard_of(options),
        resolved_shards=None if options["shards"] is None else int(options["shards"]),
        verify=options["verify"],
        answer_all=options["answer_all"],
        bases=bases_from(options),
    )


def _shard_of(options: dict[str, Any]) -> ShardNumber | None:
    """Return which shard the process is, None for other steps; UsageError for options that do not fit together."""
    if options["steps"] == SHARD and options["shard"] is None:
        raise click.UsageError("--steps shard needs --shard I/S, as in 1/4")
    if options["verify"] and options["shards"] is None:
        raise click.UsageError("--verify compares the answers of shards: give --steps decide and --shards")
    if options["max_memory"] is not None and options["shards"] is not None:
        raise click.UsageError("--max-memory is not for shards: bound the kept pages with --keep")
    return None if options["shard"] is None else ShardNumber.parse(options["shard"])


def _addresses(options: dict[str, Any]) -> "Addresses | None":
    """Return the HTTP addresses, or None. Raises ConfigurationError if one is invalid or needs a token."""
    if options["http"] is None and dashboard_from(options) is None:
        return None
    from dedup_service.interfaces.http.access_guard import ENV_VARIABLE, is_loopback, token_for
    from dedup_service.interfaces.http.server import Address
    from dedup_service.interfaces.http.service import Addresses

    http = None if options["http"] is None else Address.parse(options["http"])
    dashboard = http if options["dashboard"] is None else Address.parse(options["dashboard"])
    assert dashboard is not None
    token = os.environ.get(ENV_VARIABLE)
    if dashboard is http and not token and not is_loopback(http.host):
        return Addresses(http, None, None)
    return Addresses(http, dashboard, token_for(dashboard, token))


def _served(
    settings: ServiceSettings, observers: list[Observer], addresses: "Addresses | None", stack: ExitStack
) -> tuple[Service, Callable[[], None]]:
    """Return the service, served over HTTP if requested, and a callback for the start of its shutdown."""
    if addresses is None:
        return Service(settings, observers), lambda: None
    from dedup_service.interfaces.http.service import ServedService

    served = ServedService(settings, observers, addresses)
    served.serve(stack)
    return served.service, served.stopping


def _log_fields(settings: ServiceSettings) -> dict[str, Any]:
    return {
        "bootstrap": settings.connection.bootstrap,
        "group": settings.group,
        "prefix": settings.prefix,
        "steps": "+".join(sorted(settings.steps)),
        "outputs": settings.outputs.value,
        "state": str(settings.state),
        **({"bases": ",".join(settings.bases)} if settings.bases else {}),
        "processes": settings.processes,
        "pid": os.getpid(),
    }
