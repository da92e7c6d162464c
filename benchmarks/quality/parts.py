"""The parts of the measurement in the order in which they run; each returns values, which are cached."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.quality import (
    baselines,
    factors,
    orders,
    profiles,
    scale,
    short_texts,
)
from benchmarks.quality.store import digest_of_code, digest_of_modules
from benchmarks.quality.workspace import Workspace

COMMON = ("corpora", "edges", "greedy_dedup", "shingles", "systems", "workspace")
"""Modules of this package on which every part depends."""


@dataclass(frozen=True, slots=True)
class Part:
    """How to compute a part, and what it depends on.

    compute: of the workspace, and of arguments that differ from the defaults. modules: of this package, besides
    COMMON. deciding: whether it depends on the modules of the core that decide.
    """

    compute: Callable[..., object]
    modules: tuple[str, ...]
    deciding: bool = True


PARTS: Mapping[str, Part] = {
    "profiles": Part(profiles.compute, ("profiles",)),
    "short": Part(short_texts.compute, ("short_texts", "operators")),
    "orders": Part(orders.compute, ("orders",)),
    "baselines": Part(baselines.compute, ("baselines", "baseline_features"), deciding=False),
    "factors": Part(factors.compute, ("factors", "baselines"), deciding=False),
    "scale": Part(scale.compute, ("scale", "assembled")),
}


def result(workspace: Workspace, name: str, *arguments: object) -> object:
    """Return the result of part `name`, from the store if arguments, code and data have not changed."""
    key = _key(workspace, name, arguments)
    return workspace.store.get(f"part-{name}", key, lambda: PARTS[name].compute(workspace, *arguments))


def is_cached(workspace: Workspace, name: str, *arguments: object) -> bool:
    """Return whether the result of part `name` is in the store."""
    return workspace.store.has(f"part-{name}", _key(workspace, name, arguments))


def _key(workspace: Workspace, name: str, arguments: Sequence[object]) -> tuple[object, ...]:
    part = PARTS[name]
    return (
        *arguments,
        workspace.data,
        digest_of_code(preparing=not part.deciding),
        digest_of_modules((*COMMON, *part.modules)),
    )
