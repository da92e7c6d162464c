"""`twinsieve policy`: show or change the policy of a log, a service's or a state folder's."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import msgspec

from dedup_service.core.groups.canonical import EARLIEST, POLICIES, policy_of_log
from dedup_service.core.log_records import Policy
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.profiles import rule_text
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.interfaces.cli.support.exit_codes import ExitCode
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.options import (
    KEEP,
    LOG_BASES,
    PROFILE,
    TARGET,
    bases_from,
    connection_from,
    rule_from,
    state_folder,
    topics_from,
    with_options,
)
from dedup_service.interfaces.cli.support.progress import records_progress
from dedup_service.runtime.embedded.administration import embedded_state, policy_of_state

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")


@click.group("policy")
def policy_group() -> None:
    """Show or change the rule, the action, the bounds of expiry and the canonical pages of a log."""


@policy_group.command("show", cls=GroupedCommand, epilog="--state state")
@with_options(*TARGET)
@_JSON
def show_command(*, as_json: bool, **options: Any) -> int:
    """Show the policy in force.

    For a service, this reads its whole log.
    """
    folder = state_folder(options)
    if folder is not None:
        rule, keep, space_id = policy_of_state(folder)
        _show({"rule": rule.to_dict(), "keep": keep.to_dict(), "space": space_id}, rule, keep, as_json=as_json)
        return ExitCode.DONE
    in_force = _in_force(options)
    policy = in_force.policy
    values = {
        "rule": policy.rule.to_dict(),
        "action": policy.action.value,
        "keep": policy.keep.to_dict(),
        "canonical": policy.canonical,
        "space": policy.space_id,
        "since": in_force.sequence,
        "changes": in_force.changes,
        "log": in_force.log,
        "log_end": in_force.end,
    }
    if policy.bases:
        names = ("name", "log", "commit", "records", "entries")
        values["bases"] = [{name: getattr(base, name) for name in names} for base in policy.bases]
    _show(values, policy.rule, policy.keep, as_json=as_json)
    return ExitCode.DONE


@policy_group.command("set", cls=GroupedCommand, epilog="--state state --profile precise --keep 90d")
@with_options(*TARGET, PROFILE, KEEP, LOG_BASES)
@click.option(
    "--action",
    type=click.Choice([action.value for action in Action]),
    help="What happens to duplicates; only with --bootstrap.",
)
@click.option(
    "--group",
    metavar="NAME",
    default="twinsieve",
    show_default=True,
    help="Consumer group of the service; only with --base.",
)
@click.option(
    "--canonical",
    metavar="POLICY",
    help=f"Which page stands for a group: {POLICIES}; only with --bootstrap. It changes no verdict.",
)
@_JSON
def set_command(*, as_json: bool, **options: Any) -> int:
    """Change the rule, the action, the bounds of expiry or the canonical pages from the next page on.

    The change is a record of the log. A rule replaces the rule in force as a whole; without one, the rule stays.
    --keep replaces both bounds; `all` ends expiry. Earlier pages keep their verdicts, and what expired does not come
    back; `twinsieve replay` shows those under another policy. Running services follow when they read the record. A
    service whose command line names another rule does not start again. The space of a log cannot be changed.

    With --base, an empty log is begun, with bases and their rule and bounds, before its first service starts; a log
    that has begun keeps the bases that it has, or none.
    """
    rule = rule_from(options)
    action = None if options["action"] is None else Action(options["action"])
    keep: Keep | None = options["keep"]
    bases = bases_from(options)
    canonical = None if options["canonical"] is None else policy_of_log(options["canonical"]).text
    if rule is None and action is None and keep is None and canonical is None and not bases:
        raise click.UsageError("nothing to set: give --profile, --keep, --action, --canonical or --base")
    folder = state_folder(options)
    if folder is None:
        if bases and canonical is not None:
            raise click.UsageError("--base begins a log: give --canonical in another command, once it has begun")
        values = _begin_log(options, bases, rule, action) if bases else _set_in_log(options, rule, action, canonical)
    elif action is not None:
        raise click.UsageError("a state folder has no --action: give it to each run of `filter` or `crawl`")
    elif canonical is not None:
        raise click.UsageError("a state folder has no --canonical: give it to each run of `groups`")
    else:
        values = _set_in_folder(folder, rule, keep)
    if as_json:
        click.echo(msgspec.json.encode(values).decode())
    else:
        sequence = values["sequence"]
        outcome = "the log already has this policy" if sequence is None else f"sequence {sequence}"
        click.echo(f"{outcome}: {values['text']}")
    return ExitCode.DONE


def _set_in_folder(folder: str, rule: MatchRule | None, keep: Keep | None) -> dict[str, Any]:
    before = policy_of_state(folder)[:2]
    with embedded_state(folder, rule, keep) as state:
        after = state.rule, state.keep
        sequence = None if after == before else state.journal.sequence
    rule, keep = after
    text = f"{rule_text(rule)}{_shown(keep)}"
    return {"sequence": sequence, "rule": rule.to_dict(), "keep": keep.to_dict(), "text": text}


def _set_in_log(
    options: dict[str, Any], rule: MatchRule | None, action: Action | None, canonical: str | None
) -> dict[str, Any]:
    from dedup_service.runtime.kafka.control.operator_records import change_policy

    in_force = _in_force(options)
    changed = change_policy(
        connection_from(options), topics_from(options), in_force, rule, action, options["keep"], canonical
    )
    policy, sequence = (in_force.policy, None) if changed is None else changed
    return _values_of(policy, sequence)


def _begin_log(
    options: dict[str, Any], bases: dict[str, str], rule: MatchRule | None, action: Action | None
) -> dict[str, Any]:
    from dedup_service.runtime.kafka.control.operator_records import begin_with_bases

    topics = topics_from(options)
    group = f"{topics.prefix}{options['group']}"
    with TemporaryDirectory(prefix="twinsieve-") as folder:
        in_force = begin_with_bases(
            connection_from(options), topics, group, bases, Path(folder), rule, action, options["keep"]
        )
    return _values_of(in_force.policy, in_force.sequence)


def _values_of(policy: Policy, sequence: int | None) -> dict[str, Any]:
    bases = {"bases": [base.name for base in policy.bases]} if policy.bases else {}
    return bases | {
        "sequence": sequence,
        "rule": policy.rule.to_dict(),
        "action": policy.action.value,
        "keep": policy.keep.to_dict(),
        "canonical": policy.canonical,
        "text": f"{rule_text(policy.rule)}; action {policy.action.value}{_shown(policy.keep)}"
        f"{_canonical(policy.canonical)}{_shown_bases(policy)}",
    }


def _shown_bases(policy: Policy) -> str:
    return f"; bases {', '.join(base.name for base in policy.bases)}" if policy.bases else ""


def _shown(keep: Keep) -> str:
    return f"; keep {keep}" if keep else ""


def _canonical(policy: str) -> str:
    return "" if policy == EARLIEST.text else f"; canonical {policy}"


def _in_force(options: dict[str, Any]) -> Any:
    from dedup_service.runtime.kafka.control.operator_records import policy_in_force

    with records_progress("reading the log") as read:
        return policy_in_force(connection_from(options), topics_from(options), read)


def _show(values: dict[str, Any], rule: MatchRule, keep: Keep, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(values).decode())
        return
    bases = [f"{base['name']} ({base['entries']:,} pages, {base['commit']})" for base in values.get("bases", ())]
    shown_bases = {"bases": ", ".join(bases)} if bases else {}
    for name, value in (values | {"rule": rule_text(rule), "keep": keep} | shown_bases).items():
        shown = f"{value:,}" if isinstance(value, int) else value
        click.echo(f"{name.replace('_', ' '):<8} {shown}")
