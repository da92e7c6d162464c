"""Which steps of `serve` use which option, and the refusal of options that none of the chosen steps uses.

An option that is ignored silently lets its owner believe that it is in force. Only what the command line says is
refused: variables of the environment may be set for all processes of a deployment.
Invariant: `USED_BY` has every option of `serve`, so that a new one cannot be forgotten (tests/…/test_serve.py).
"""

from collections.abc import Mapping

import click
from click.core import ParameterSource

from dedup_service.runtime.kafka.service import CANONICAL, DECIDE, FINGERPRINT, SHARD

BOTH = "both"

Steps = tuple[str, ...]
"""Values of --steps, in the order of its help."""

_ALL: Steps = (BOTH, FINGERPRINT, DECIDE, SHARD, CANONICAL)
_PREPARE: Steps = (BOTH, FINGERPRINT)
_DECIDE: Steps = (BOTH, DECIDE)
_LOG: Steps = (BOTH, FINGERPRINT, DECIDE)
"""They fingerprint or decide: each of them may be the first process, which begins the log with its policy."""

_OPTIONS: tuple[tuple[Steps, str], ...] = (
    (_ALL, "bootstrap prefix properties group state steps instance bases drain_s"),
    (_ALL, "http dashboard log_level log_format"),
    (_LOG, "outputs space action keep profile"),
    (_PREPARE, "processes max_rejected_share"),
    (_DECIDE, "max_memory"),
    ((DECIDE,), "shards verify"),
    ((SHARD,), "shard answer_all"),
)

USED_BY: Mapping[str, Steps] = {name: steps for steps, names in _OPTIONS for name in names.split()}
"""By parameter name: the values of --steps with which an option does something."""


def refuse_unused_options(context: click.Context) -> None:
    """Raise UsageError if the command line gives options of `serve` that its --steps do not use; names all of them."""
    chosen = context.params["steps"]
    unused = [
        f"{option.opts[0]} is for --steps {_listed(USED_BY[option.name])}"
        for option in context.command.params
        if chosen not in USED_BY[option.name]
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
    if unused:
        raise click.UsageError(f"leave out what --steps {chosen} does not use: {'; '.join(unused)}")


def _listed(steps: Steps) -> str:
    *others, last = steps
    return f"{', '.join(others)} or {last}" if others else last
