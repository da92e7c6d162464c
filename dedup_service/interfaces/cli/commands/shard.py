"""`twinsieve shard`: make the state folder of a shard from those of others."""

from pathlib import Path

import click
import msgspec

from dedup_service.core.shards.shard import ShardNumber
from dedup_service.interfaces.cli.support.grouped_help import GroupedCommand
from dedup_service.interfaces.cli.support.progress import stages_progress


@click.group("shard")
def shard_group() -> None:
    """Copy a shard to another number of shards."""


@shard_group.command("copy", cls=GroupedCommand, epilog="--shard 6/8 --state new s3://bucket/shard-2")
@click.argument("sources", metavar="FROM...", nargs=-1, required=True)
@click.option("--shard", "number", metavar="I/S", required=True, help="Which shard to make, counted from 1, as in 6/8.")
@click.option("--state", "folder", metavar="NEW", required=True, help="Folder of the new shard: empty, or missing.")
def copy_command(sources: tuple[str, ...], number: str, folder: str) -> None:
    """Make the state folder NEW of shard I/S from the last snapshots of shards that have its slots.

    FROM is the --state of a shard, or the address of a copy, as in s3://bucket/prefix, which needs the extra `s3`. The
    shards may be running. For twice as many shards, each new one needs one: 2/8 and 6/8 are made from 2/4. Several are
    merged if all of them were stopped at the same message of the log. The copy has the slots of I/S alone. It takes the
    memory of that shard, and an address is downloaded into NEW first. `serve --steps shard --shard I/S --state NEW`
    goes on from it. A copy that was interrupted leaves nothing that would be used: run it again.

    Prints one line of JSON.
    """
    from dedup_service.runtime.kafka.shards.copying import copy_shard

    shard = ShardNumber.parse(number)
    with stages_progress() as report:
        copied = copy_shard(shard, Path(folder), sources, report)
    click.echo(msgspec.json.encode(copied).decode())
