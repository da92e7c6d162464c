"""The help of a command: its options in groups, and an example at the end.

An option is in a group by the name of its parameter, so all commands have the same groups, in one order.
Invariant: `GROUPS` has every option of every command, in one group (tests/…/test_grouped_help.py).
"""

import click

GROUPS = {
    "Kafka": "bootstrap prefix properties group",
    "Input": "columns depth domains files follow max_pairs nearest of sample serve_only source title url_prefix",
    "Output": "action as_json canonical dashboard dry_run errors explain export host http kept kept_verdicts "
    "log_format log_level min_size neighbours no_plots output outputs pages quiet results revisits to_prefix "
    "verdicts with_input",
    "State": "bases by folder keep_journal keep_record name reason state",
    "What is a duplicate": "duplicate_of not_duplicate_of precision profile",
    "Limits": "delay drain_s keep max_memory max_page_bytes max_rejected_share partitions processes rate replication "
    "retention share",
    "Expert": "answer_all confident half instance min_pages number overrides shard shards slots space steps verify",
}
"""Heading → parameter names."""


class GroupedCommand(click.Command):
    """A command whose `epilog` has the arguments of its example."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group that has options of this command, and one for the others."""
        group_of = {name: group for group, names in GROUPS.items() for name in names.split()}
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        for group in (*GROUPS, "Options"):
            of_group = [option for option in options if group_of.get(option.name or "", "Options") == group]
            if rows := [row for option in of_group if (row := option.get_help_record(ctx)) is not None]:
                with formatter.section(group):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example as it is typed."""
        with formatter.section("Example"):
            formatter.write(f"  {ctx.command_path} {self.epilog}\n")
