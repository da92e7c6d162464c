"""`twinsieve policy`: what decides from here on, in the log of a service or of a state folder."""

from typing import Any

import click
import msgspec

from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.interfaces.cli.support.options import (
    MATCHING,
    TARGET,
    connection_of,
    rule_of,
    state_folder,
    topics_of,
    with_options,
)
from dedup_service.interfaces.cli.support.progress import records_progress
from dedup_service.runtime.embedded.administration import embedded_state, rule_of_state

__all__ = ["policy_group"]

_JSON = click.option("--json", "as_json", is_flag=True, help="One line of JSON.")


@click.group("policy")
def policy_group() -> None:
    """Show or change the rule and the action that decide."""


@policy_group.command("show", epilog=EPILOG)
@with_options(*TARGET)
@_JSON
def show_command(*, as_json: bool, **options: Any) -> int:
    """Show the policy in force. Of a service, its whole log is read for it."""
    folder = state_folder(options)
    if folder is not None:
        rule, space_id = rule_of_state(folder)
        _show({"rule": rule.to_dict(), "space": space_id}, rule, as_json=as_json)
        return ExitCode.DONE
    in_force = _in_force(options)
    policy = in_force.policy
    facts = {
        "rule": policy.rule.to_dict(),
        "action": policy.action.value,
        "space": policy.space_id,
        "since": in_force.sequence,
        "changes": in_force.changes,
        "log": in_force.log,
        "log_end": in_force.end,
    }
    _show(facts, policy.rule, as_json=as_json)
    return ExitCode.DONE


@policy_group.command("set", epilog=EPILOG)
@with_options(*TARGET, *MATCHING)
@click.option(
    "--action", type=click.Choice([action.value for action in Action]), help="What becomes of duplicates (--bootstrap)."
)
@_JSON
def set_command(*, as_json: bool, **options: Any) -> int:
    """Add a policy record: the rule or action named here decides from the next page on.

    What is not named stays. The pages so far keep the verdicts that they have (`twinsieve replay` decides them anew).
    Running services follow when they come to the record; one that names another rule on its own command line does
    not start again. The space of a log cannot be changed.
    """
    rule = rule_of(options)
    action = None if options["action"] is None else Action(options["action"])
    if rule is None and action is None:
        raise click.UsageError("nothing to set: give --k, --channels, --mu or --action")
    folder = state_folder(options)
    if folder is None:
        facts = _set_in_log(options, rule, action)
    elif rule is None or action is not None:
        raise click.UsageError("--action is none of a state folder's: each run of `filter` or `crawl` says its own")
    else:
        facts = _set_in_folder(folder, rule)
    if as_json:
        click.echo(msgspec.json.encode(facts).decode())
    else:
        said = "the log has this policy already" if facts["sequence"] is None else f"sequence {facts['sequence']}"
        click.echo(f"{said}: {facts['text']}")
    return ExitCode.DONE


def _set_in_folder(folder: str, rule: MatchRule) -> dict[str, Any]:
    before = rule_of_state(folder)[0]
    with embedded_state(folder, rule) as state:
        sequence = None if rule == before else state.journal.sequence
    return {"sequence": sequence, "rule": rule.to_dict(), "text": str(rule)}


def _set_in_log(options: dict[str, Any], rule: MatchRule | None, action: Action | None) -> dict[str, Any]:
    from dedup_service.runtime.kafka.control.operator_records import change_policy

    in_force = _in_force(options)
    changed = change_policy(connection_of(options), topics_of(options), in_force, rule, action)
    policy, sequence = (in_force.policy, None) if changed is None else changed
    return {
        "sequence": sequence,
        "rule": policy.rule.to_dict(),
        "action": policy.action.value,
        "text": f"{policy.rule}; action {policy.action.value}",
    }


def _in_force(options: dict[str, Any]) -> Any:
    from dedup_service.runtime.kafka.control.operator_records import policy_in_force

    with records_progress("reading the log") as read:
        return policy_in_force(connection_of(options), topics_of(options), read)


def _show(facts: dict[str, Any], rule: MatchRule, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(facts).decode())
        return
    for name, value in (facts | {"rule": rule}).items():
        shown = f"{value:,}" if isinstance(value, int) else value
        click.echo(f"{name.replace('_', ' '):<8} {shown}")
