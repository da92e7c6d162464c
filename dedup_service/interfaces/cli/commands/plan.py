"""`twinsieve plan`: what an index over many machines takes for a crawl of a given size."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click
import msgspec

from dedup_service.core.capacity.capacity_plan import CapacityPlan, PlannedFigure, capacity_plan
from dedup_service.core.capacity.shard_bounds import ShardBound
from dedup_service.core.capacity.unit_costs import CostOrigin, UnitCost
from dedup_service.core.capacity.workload import ClusterRequest, MachineKind, Workload
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import DEFAULT_LAYOUT
from dedup_service.interfaces.cli.support.exit_codes import EPILOG, ExitCode
from dedup_service.runtime.memory_limit import parse_size

_AGE_S = {"h": 3_600, "d": 86_400, "w": 604_800}
_THOUSANDS = {"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
_NUMBER = re.compile(r"(\d[\d_,]*\.?\d*|\.\d+)([eE]\+?\d+)?\s*([kKMGBT]?)")
_BYTES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))
_DURATIONS = (("days", 86_400, 2), ("h", 3_600, 1), ("min", 60, 1), ("s", 1, 1), ("ms", 1e-3, 1), ("µs", 1e-6, 1))
_GBIT_BYTES = 1e9 / 8


def _number(text: str) -> float | None:
    """Return the number that `text` writes (10000, 10_000, 10,000, 1e10, 10k, 2.5M), or None."""
    found = _NUMBER.fullmatch(text.strip())
    if not found:
        return None
    digits = found[1].replace("_", "").replace(",", "")
    return float(digits + (found[2] or "")) * _THOUSANDS[found[3]]


class _NumberType(click.ParamType[float]):
    """A number above 0."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number that `value` names."""
        number = value if isinstance(value, int | float) else _number(value)
        if number is None or not 0 < number < float("inf"):
            self.fail(f"{value!r} is no number above 0: write 1e10, 10_000 or 2.5M", param, ctx)
        return number


class _CountType(click.ParamType[int]):
    """A whole number above 0."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the whole number that `value` names."""
        number = value if isinstance(value, int) else _number(value)
        if number is None or number < 1 or number == float("inf") or number != int(number):
            self.fail(f"{value!r} is no whole number above 0: write 64 or 4_096", param, ctx)
        return int(number)


class _PagesType(click.ParamType[float | str]):
    """A number of pages, or how long pages come."""

    name = "pages"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Return the number that `value` names, or a duration as it is."""
        text = str(value).strip()
        if re.fullmatch(r"[0-9]{1,9}[hdw]", text) and int(text[:-1]):
            return text
        number = _number(text)
        if not number or number == float("inf"):
            self.fail(f"{value!r} is no number of pages: write 1e10, 500M, or 90d for all of 90 days", param, ctx)
        return number


class _ShareType(click.ParamType[float]):
    """A share from 0 to 1."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share that `value` names."""
        text = str(value).strip()
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            self.fail(f"{value!r} is no share from 0 to 1: write .6 or 60%", param, ctx)
        return share


class _KeptType(click.ParamType[Keep]):
    """Bounds of expiry, whose number of pages may be written as other numbers here."""

    name = "keep"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Keep:
        """Return the bounds that `value` names."""
        if isinstance(value, Keep):
            return value
        number = _number(value)
        try:
            return Keep.parse(value) if number is None or number == float("inf") else Keep(max_pages=int(number))
        except ConfigurationError as error:
            self.fail(str(error), param, ctx)


class _BytesType(click.ParamType[int]):
    """A number of bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes that `value` names."""
        try:
            return value if isinstance(value, int) else parse_size(value)
        except ConfigurationError as error:
            self.fail(str(error), param, ctx)


@click.command("plan", epilog=EPILOG)
@click.option(
    "--pages",
    metavar="NUMBER|TIME",
    type=_PagesType(),
    required=True,
    help="Pages in the log in the end: 1e10, 500M; or how long they come at the rate: 90d.",
)
@click.option("--rate", metavar="NUMBER", type=_NumberType(), required=True, help="Pages a second: 10000, 10_000, 10k.")
@click.option(
    "--copies", metavar="SHARE", type=_ShareType(), default=0.0, help="Share that are copies: .6, 60%. [default: 0]"
)
@click.option(
    "--keep",
    metavar="PAGES|AGE",
    type=_KeptType(),
    default=KEEP_ALL,
    help="Bounds of expiry: 1e9, 90d, both with a comma between them, or all. [default: all]",
)
@click.option(
    "--text-letters", metavar="N", type=_CountType(), default=700, show_default=True, help="Letters of a text."
)
@click.option("--html", is_flag=True, help="Pages come as HTML of 60 KB, and not as texts.")
@click.option(
    "--slots", metavar="V", type=_CountType(), help="Slots: 1, 2 … 64. [default: as many as shards, from 8 on]"
)
@click.option("--shards", metavar="S", type=_CountType(), help="Shards, which divide the slots. [default: the fewest]")
@click.option(
    "--replicas", metavar="R", type=_CountType(), default=2, show_default=True, help="Processes with the same shard."
)
@click.option(
    "--window",
    metavar="W",
    type=_CountType(),
    default=DEFAULT_LAYOUT.window,
    show_default=True,
    help="Pages by which the index lags behind the log.",
)
@click.option(
    "--machine-memory", metavar="SIZE", type=_BytesType(), default="32GiB", show_default=True, help="Of a machine."
)
@click.option(
    "--machine-disk", metavar="SIZE", type=_BytesType(), default="8TiB", show_default=True, help="Of a machine."
)
@click.option("--cores", metavar="N", type=_CountType(), default=8, show_default=True, help="Of a machine.")
@click.option(
    "--network", metavar="GBIT/S", type=_NumberType(), default=10.0, show_default=True, help="Of a machine, each way."
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of tables.")
def plan_command(pages: float | str, rate: float, *, as_json: bool, **options: Any) -> int:
    """Plan an index over many machines.

    Prints machines, memory, disk, traffic of the brokers and restore times of fingerprinters, shards, resolver and
    brokers. It takes the fewest shards (a power of two, at most 64) that fit into the memory of a machine and keep up
    with the rate, and says which bound decided. Each figure names the constants that it comes from; the last table has
    them with their sources. `estimated` ones were not measured. Memory is in GiB, all else in decimal units.
    """
    if isinstance(pages, str):
        pages = int(pages[:-1]) * _AGE_S[pages[-1]] * rate
    plan = capacity_plan(
        Workload(
            pages=pages,
            rate=rate,
            copies=options["copies"],
            keep=options["keep"],
            text_letters=options["text_letters"],
            html=options["html"],
        ),
        MachineKind(
            memory_bytes=options["machine_memory"],
            disk_bytes=options["machine_disk"],
            cores=options["cores"],
            network_bytes=options["network"] * _GBIT_BYTES,
        ),
        ClusterRequest(
            slots=options["slots"],
            shards=options["shards"],
            replicas=options["replicas"],
            window=options["window"],
        ),
    )
    if as_json:
        click.echo(msgspec.json.encode(_plain(plan)).decode())
    else:
        _print(plan)
    return ExitCode.DONE


def _plain(plan: CapacityPlan) -> dict[str, Any]:
    workload = asdict(plan.workload) | {"keep": plan.workload.keep.to_dict(), "kept": plan.workload.kept}
    return {
        "workload": workload,
        "machine": asdict(plan.machine),
        "cluster": {
            "slots": plan.chosen.slots,
            "shards": plan.chosen.shards,
            "replicas": plan.request.replicas,
            "window": plan.request.window,
            "bounds": [asdict(bound) for bound in plan.chosen.bounds],
            "decided_by": [asdict(bound) for bound in plan.chosen.decided_by],
        },
        "figures": [asdict(figure) for figure in plan.figures],
        "topics": [asdict(topic) | {"out_bytes": topic.out_bytes} for topic in plan.topics],
        "constants": {
            key: asdict(cost) | {"source": cost.source, "origin": cost.origin.value}
            for key, cost in plan.costs.by_key().items()
        },
    }


def _print(plan: CapacityPlan) -> None:
    from rich.console import Console

    numbers = _numbers(plan)
    console = Console()
    for line in _summary(plan):
        console.print(line, highlight=False)
    table = _table(None, "part", "what", ">figure", "from constants")
    last = ""
    for figure in plan.figures:
        if figure.part != last and last:
            table.add_section()
        marks = _references(figure.basis, plan, numbers)
        table.add_row("" if figure.part == last else figure.part, figure.name, _shown(figure), marks)
        last = figure.part
    console.print(table)
    topics = _table("Topics", "topic", ">in", ">readers", ">out", "kept for", ">stored, one replica", "from constants")
    for topic in plan.topics:
        sizes = (f"{_decimal(topic.in_bytes)}/s", str(topic.readers), f"{_decimal(topic.out_bytes)}/s")
        stored = _decimal(topic.stored_bytes)
        topics.add_row(topic.topic, *sizes, topic.kept, stored, _references(topic.basis, plan, numbers))
    console.print(topics)
    constants = _table("Constants (e: estimated, not measured)", ">", "constant", ">value", "source")
    for key in numbers:
        cost = plan.costs.by_key()[key]
        constants.add_row(_reference(key, plan, numbers), cost.name, _cost(cost), cost.source)
    console.print(constants)


def _numbers(plan: CapacityPlan) -> dict[str, int]:
    """Return the constants that the plan comes from, numbered in their order."""
    named = {key for figure in plan.figures for key in figure.basis} | {key for one in plan.topics for key in one.basis}
    return {key: number for number, key in enumerate((key for key in plan.costs.by_key() if key in named), 1)}


def _table(title: str | None, *columns: str) -> Any:
    """Return a table; a column whose heading begins with > is adjusted to the right."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left", overflow="fold")
    return table


def _summary(plan: CapacityPlan) -> Sequence[str]:
    chosen, kept = plan.chosen, plan.workload.kept
    machines = sum(figure.value for figure in plan.figures if figure.unit == "machines")
    cluster = f"{chosen.shards} shards of {chosen.slots} slots, {plan.request.replicas} replicas each"
    return (
        f"{plan.workload.pages:,.0f} pages at {plan.workload.rate:,g} a second, {kept:,.0f} of them kept",
        f"{cluster}; {machines:,.0f} machines in all",
        _decided(plan),
    )


def _decided(plan: CapacityPlan) -> str:
    if plan.request.shards is not None:
        return "number of shards: as given"
    if not plan.chosen.decided_by:
        return "number of shards: one is enough"
    needs = ", ".join(f"{bound.name} {_bound(bound)}" for bound in plan.chosen.decided_by)
    return f"number of shards decided by {needs}: what each of {plan.chosen.shards // 2} shards would need"


def _bound(bound: ShardBound) -> str:
    if bound.unit == "bytes":
        return f"({_binary(bound.needed)} of {_binary(bound.allowed)})"
    return f"({bound.needed:,.0f} of {bound.allowed:,.0f} {bound.unit})"


def _reference(key: str, plan: CapacityPlan, numbers: dict[str, int]) -> str:
    return f"{numbers[key]}{'e' if plan.costs.by_key()[key].origin is CostOrigin.ESTIMATED else ''}"


def _references(keys: Sequence[str], plan: CapacityPlan, numbers: dict[str, int]) -> str:
    return " ".join(_reference(key, plan, numbers) for key in sorted(set(keys), key=numbers.__getitem__))


def _shown(figure: PlannedFigure) -> str:
    """Return a figure for people."""
    value, unit = figure.value, figure.unit
    if unit == "bytes":
        return _binary(value) if figure.name.startswith("memory") else _decimal(value)
    if unit == "bytes/s":
        return f"{_decimal(value)}/s"
    if unit == "s":
        return _duration(value)
    if figure.name.startswith("share"):
        return f"{value:.0%}"
    return f"{value:,.1f} {unit}" if unit == "cores" else f"{value:,.0f} {unit}".strip()


def _cost(cost: UnitCost) -> str:
    if cost.unit == "s":
        return _duration(cost.value)
    return f"{cost.value:,.6g} {cost.unit}".strip() if cost.value < 1e6 else f"{cost.value:,.0f} {cost.unit}".strip()


def _binary(size_bytes: float) -> str:
    return f"{size_bytes / (1 << 30):,.1f} GiB"


def _decimal(size_bytes: float) -> str:
    """Return a number of bytes in decimal units.

    >>> _decimal(7e12), _decimal(448e6), _decimal(12)
    ('7.00 TB', '448 MB', '12 bytes')
    """
    for prefix, size in _BYTES:
        if size_bytes >= size:
            value = size_bytes / size
            return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f} {prefix}B"
    return f"{size_bytes:.0f} bytes"


def _duration(seconds: float) -> str:
    """Return a duration in its largest unit.

    >>> _duration(93_756), _duration(0.1714), _duration(9e-6), _duration(604_800), _duration(1.7e-3)
    ('26 h', '171 ms', '9 µs', '7 days', '1.7 ms')
    """
    for unit, size, least in _DURATIONS:
        if seconds >= size * least:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
