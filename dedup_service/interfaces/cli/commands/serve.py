"""`twinsieve serve`: one process of the Kafka service, until it is told to stop."""

import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dedup_service.core.verdict import Action
from dedup_service.interfaces.cli.support.dashboard_options import DASHBOARD, dashboard_of
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.logs import LOG_OPTIONS, ServiceLog, configure_logging
from dedup_service.interfaces.cli.support.options import (
    BROKER,
    MATCHING,
    SPACE,
    connection_of,
    rule_of,
    space_of,
    with_options,
)
from dedup_service.interfaces.cli.support.progress import RestoreBar
from dedup_service.interfaces.cli.support.stop_signals import StopSignals
from dedup_service.runtime.events import Observer
from dedup_service.runtime.kafka.service import DECIDE, FINGERPRINT, Service, ServiceSettings
from dedup_service.runtime.kafka.steps.dead_letter_limit import RejectionLimit

if TYPE_CHECKING:
    from dedup_service.interfaces.http.service import Addresses

__all__ = ["serve_command"]

_LOG = logging.getLogger(__name__)

STEPS = {
    "both": frozenset({FINGERPRINT, DECIDE}),
    FINGERPRINT: frozenset({FINGERPRINT}),
    DECIDE: frozenset({DECIDE}),
}
DEFAULTS = {name: field.default for name, field in ServiceSettings.__dataclass_fields__.items()}


def _seconds(name: str, text: str, *, minimum: float) -> Any:
    """An option in seconds with the default of ServiceSettings."""
    default = DEFAULTS[name]
    option = "--" + name.replace("_", "-")
    return click.option(option, type=click.FloatRange(minimum), default=default, show_default=True, help=text)


WORK = (
    click.option("--group", default=DEFAULTS["group"], show_default=True, help="Consumer group; shared by processes."),
    click.option("--state", metavar="DIR", required=True, help="Of this process alone: its name, and snapshots."),
    click.option("--steps", type=click.Choice(list(STEPS)), default="both", show_default=True, help="What it does."),
    click.option("--instance", metavar="NAME", help="Of this process in its groups. [default: kept in DIR]"),
    click.option(
        "--action",
        type=click.Choice([action.value for action in Action]),
        help="What becomes of duplicates; drop writes them nowhere. [default: the log's, or flag]",
    ),
)
BOUNDS = (
    click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="That prepare pages."),
    click.option("--shards", type=click.IntRange(1), default=1, show_default=True, help="Parts of the index."),
    _seconds("page_timeout_s", "A page may take; then it is kept, undecided.", minimum=0.1),
    click.option(
        "--max-rejected-share",
        type=click.FloatRange(0, 1, min_open=True),
        default=RejectionLimit().share,
        show_default=True,
        metavar="SHARE",
        help="Of records that describe no page; above it the service stops. 1 is no ceiling.",
    ),
    _seconds("start_s", "Brokers may be away at the start; later, for ever.", minimum=0),
    _seconds("drain_s", "After SIGTERM or Ctrl-C, for what is in hand.", minimum=0),
    _seconds("transaction_timeout_s", "After which the broker ends a frozen process's transaction.", minimum=1),
    _seconds("session_timeout_s", "After which a process that is gone loses its partitions.", minimum=0.5),
    click.option(
        "--snapshot-every",
        type=click.IntRange(1),
        default=DEFAULTS["snapshot_every"],
        show_default=True,
        metavar="RECORDS",
        help="Between two snapshots, at least.",
    ),
)
HTTP = (
    click.option(
        "--http",
        metavar="[HOST:]PORT",
        help="Serve /livez, /readyz, /metrics, and the dashboard where it may be shown. [default host: loopback]",
    ),
    *DASHBOARD,
)


@click.command("serve", epilog=EPILOG)
@with_options(*BROKER, *WORK, *MATCHING, *SPACE, *BOUNDS, *HTTP, *LOG_OPTIONS)
def serve_command(**options: Any) -> int:
    """Give every page of the topic `pages` a verdict, exactly once, whatever dies.

    Reads `pages`; writes `verdicts`, and the pages themselves to `pages.unique` or `pages.duplicate`. Run as many
    processes as you like, with the same --group and each with its own --state: together they answer as one. The
    topics are made by `twinsieve topics create`.

    The first SIGTERM or Ctrl-C stops it once what is in hand is written, within --drain-s; the second ends it at
    once. Either way nothing is lost and nothing is said twice.
    """
    settings = settings_of(options)
    addresses = _addresses(options)
    configure_logging(options["log_level"], options["log_format"])
    _LOG.info("starting", extra={"facts": _facts(settings)})
    with ExitStack() as stack:
        log = ServiceLog(restores=not sys.stderr.isatty())
        stack.callback(log.close)
        observers: list[Observer] = [log]
        if sys.stderr.isatty():
            observers.append(stack.enter_context(RestoreBar()))
        service, stopping = _watched(settings, observers, addresses, stack)

        def told(number: signal.Signals) -> None:
            stopping()
            facts = {"signal": number.name, "within_s": settings.drain_s}
            _LOG.info("stopping; the same again ends it at once", extra={"facts": facts})

        signals = stack.enter_context(StopSignals(told))
        service.run(signals.stop)
    _LOG.info("stopped")
    return signals.code or ExitCode.DONE


def settings_of(options: dict[str, Any]) -> ServiceSettings:
    """Return the settings that the options name."""
    return ServiceSettings(
        connection=connection_of(options),
        state=Path(options["state"]),
        group=options["group"],
        prefix=options["prefix"],
        steps=STEPS[options["steps"]],
        instance=options["instance"],
        space=space_of(options),
        rule=rule_of(options),
        action=None if options["action"] is None else Action(options["action"]),
        processes=options["processes"],
        shards=options["shards"],
        page_timeout_s=options["page_timeout_s"],
        rejection_limit=RejectionLimit(share=options["max_rejected_share"]),
        start_s=options["start_s"],
        drain_s=options["drain_s"],
        transaction_timeout_s=options["transaction_timeout_s"],
        session_timeout_s=options["session_timeout_s"],
        snapshot_every=options["snapshot_every"],
    )


def _addresses(options: dict[str, Any]) -> "Addresses | None":
    """Return where to serve, None for nowhere; ConfigurationError for an address that is none or needs a token."""
    if options["http"] is None and dashboard_of(options) is None:
        return None
    from dedup_service.interfaces.http.access_guard import ENV_VARIABLE, is_loopback, token_for
    from dedup_service.interfaces.http.server import Address
    from dedup_service.interfaces.http.service import Addresses

    http = None if options["http"] is None else Address.parse(options["http"])
    if options["dashboard"] is not None:
        dashboard = Address.parse(options["dashboard"])
        return Addresses(http, dashboard, token_for(dashboard, options["dashboard_token"]), carried=False)
    assert http is not None
    given = options["dashboard_token"] or os.environ.get(ENV_VARIABLE)
    if not given and not is_loopback(http.host):
        return Addresses(http, None, None, carried=False)
    return Addresses(http, None, token_for(http, given), carried=True)


def _watched(
    settings: ServiceSettings, observers: list[Observer], addresses: "Addresses | None", stack: ExitStack
) -> tuple[Service, Callable[[], None]]:
    """Return the service, observed and served over HTTP where that is asked for, and whom to tell that it stops."""
    if addresses is None:
        return Service(settings, observers), lambda: None
    from dedup_service.interfaces.http.service import ServedService

    served = ServedService(settings, observers, addresses)
    served.serve(stack)
    return served.service, served.stopping


def _facts(settings: ServiceSettings) -> dict[str, Any]:
    return {
        "bootstrap": settings.connection.bootstrap,
        "group": settings.group,
        "prefix": settings.prefix,
        "steps": "+".join(sorted(settings.steps)),
        "state": str(settings.state),
        "processes": settings.processes,
        "pid": os.getpid(),
    }
