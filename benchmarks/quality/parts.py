"""The parts of the measurement in the order in which they are run: each gives values, which are stored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.quality import (
    alternatives,
    baselines,
    channels,
    estimator,
    factors,
    few_words,
    profiles,
    short_texts,
)
from benchmarks.quality.store import digest_of_code, digest_of_modules
from benchmarks.quality.world import Workspace

__all__ = ["PARTS", "Part", "known", "result"]

COMMON = ("corpora", "edges", "scheme_words", "shingles", "systems", "walk", "world")


@dataclass(frozen=True, slots=True)
class Part:
    """How to work it out, and what it hangs on.

    modules: of this package, besides COMMON. deciding: whether the modules of the core matter that decide.
    """

    compute: Callable[[Workspace], object]
    modules: tuple[str, ...]
    deciding: bool = True


PARTS: Mapping[str, Part] = {
    "profiles": Part(profiles.compute, ("profiles",)),
    "short": Part(short_texts.compute, ("short_texts", "operators")),
    "estimator": Part(estimator.compute, ("estimator",)),
    "channels": Part(channels.compute, ("channels",)),
    "baselines": Part(baselines.compute, ("baselines", "peers"), deciding=False),
    "factors": Part(factors.compute, ("factors", "baselines"), deciding=False),
    "few-words": Part(few_words.compute, ("few_words",), deciding=False),
    "alternatives": Part(alternatives.compute, ("alternatives",)),
}


def result(world: Workspace, name: str) -> object:
    """Return what part `name` gives, from the store where code and data are those of last time."""
    return world.store.get(f"part-{name}", _key(world, name), lambda: PARTS[name].compute(world))


def known(world: Workspace, name: str) -> bool:
    """Whether the result of part `name` is in the store."""
    return world.store.has(f"part-{name}", _key(world, name))


def _key(world: Workspace, name: str) -> tuple[str, ...]:
    part = PARTS[name]
    return world.data, digest_of_code(preparing=not part.deciding), digest_of_modules((*COMMON, *part.modules))
