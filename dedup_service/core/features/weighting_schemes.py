"""The weighting schemes under the names that the command line and the space use.

A scheme says which factors it multiplies; each can be switched off, which is how the ablation in
docs/quality.md was made. Formulas and sources are in `factors`; the default, `twinsieve`, was chosen
by measurement: (1 + ln n) · idf · title 5 · marker 2 over words of two characters and more.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, mul
from typing import Self

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features import weighting_factors
from dedup_service.core.features.hashing import HASHES
from dedup_service.core.features.simhash import FIXED_POINT, fixed_point
from dedup_service.core.features.words import WordNeeds, WordTable
from dedup_service.core.kernels import kernel

__all__ = ["FACTORS", "SCHEMES", "SETTINGS", "Scheme", "scheme_named"]

MAX = 1000  # boosts beyond it would let one word decide alone, and could overflow the sums

FACTORS = ("idf", "title", "marker", "pos", "length")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """Which factors make a word's weight.

    tf: raw, relative or log. idf: multiply by it. levels: replace tf·idf by its quintile in the page.
    title, marker: the boost, 1 for none; marker_by: sentence or word. pos: weigh by part of speech.
    length: "", gauss (2.207 is σ), gauss-c (2.207 is c = √2·σ) or minmax.
    combine: product, or sum, of the factors after tf·idf (S4 offers both).
    with_title: words of the title are features. min_chars: shorter words are none. hash: xxh3 or java.
    """

    name: str
    tf: str = "raw"
    idf: bool = False
    levels: bool = False
    title: float = 1.0
    marker: float = 1.0
    marker_by: str = "sentence"
    pos: bool = False
    length: str = ""
    combine: str = "product"
    with_title: bool = True
    min_chars: int = 1
    hash: str = "xxh3"

    @property
    def needs(self) -> WordNeeds:
        """What the word table must tell."""
        marker_by = self.marker_by if self.marker != 1 else ""
        return WordNeeds(tags=self.pos, title=self.with_title, marker_by=marker_by, min_chars=self.min_chars)

    def without(self, names: Iterable[str]) -> Self:
        """The scheme with some of FACTORS switched off; ConfigurationError for a name that is none."""
        off = {"idf": {"idf": False}, "title": {"title": 1.0}, "marker": {"marker": 1.0}}
        off |= {"pos": {"pos": False}, "length": {"length": ""}}
        scheme = self
        for name in names:
            if name not in off:
                raise ConfigurationError(f"a factor is one of {', '.join(FACTORS)}, got {name!r}")
            scheme = replace(scheme, **off[name])  # type: ignore[arg-type]
        return scheme

    def with_settings(self, settings: Iterable[str]) -> Self:
        """The scheme with fields set by `name=value`, such as title=3, combine=sum or hash=java.

        ConfigurationError names the field and what it may be.
        """
        scheme = self
        for setting in settings:
            name, _, value = setting.partition("=")
            scheme = replace(scheme, **{name: _read(name, value)})  # type: ignore[arg-type]
        return scheme

    def weigh(self, table: WordTable) -> npt.NDArray[np.int64]:
        """Return the fixed-point weight of each word: int64[n]."""
        if self._is_plain:
            switches = (self.idf, self.combine == "product")
            return plain_weights(
                table.counts, table.idf, table.in_title, table.marked, self.title, self.marker, switches
            )
        weights = weighting_factors.term_frequency(table, self.tf)
        if self.idf:
            weights = weights * table.idf
        if self.levels:
            weights = weighting_factors.levels(weights)
        boosts = [boost for _, boost in self.boosts(table)]
        if boosts:
            weights = weights * reduce(mul if self.combine == "product" else add, boosts)
        return fixed_point(weights)

    @property
    def _is_plain(self) -> bool:
        """Whether it is (1 + ln n), times idf, title and marker: the default, in one loop at a tenth of the price."""
        return self.tf == "log" and not (self.levels or self.pos or self.length)

    def boosts(self, table: WordTable) -> list[tuple[str, npt.NDArray[np.float64]]]:
        """Return the factors after tf·idf that are on, with the name of each: what an explanation lists."""
        found = []
        if self.pos:
            found.append(("pos", weighting_factors.part_of_speech(table)))
        if self.length == "minmax":
            found.append(("length", weighting_factors.minmax_length(table)))
        elif self.length:
            found.append(("length", weighting_factors.gauss_length(table, as_sigma=self.length == "gauss")))
        if self.marker != 1:
            found.append(("marker", weighting_factors.marker(table, self.marker)))
        if self.title != 1:
            found.append(("title", weighting_factors.title(table, self.title)))
        return found


@kernel
def plain_weights(
    counts: npt.NDArray[np.int64],
    idf: npt.NDArray[np.float64],
    in_title: npt.NDArray[np.bool_],
    marked: npt.NDArray[np.bool_],
    title: float,
    marker: float,
    switches: tuple[bool, bool],
) -> npt.NDArray[np.int64]:
    """Return fixed-point weights int64[n], each step as `factors` has it. switches: idf; product of the boosts."""
    by_idf, product = switches
    weights = np.empty(len(counts), dtype=np.int64)
    for i in range(len(counts)):
        weight = 1.0 + np.log(np.float64(counts[i]))
        if by_idf:
            weight *= idf[i]
        of_title, of_marker = title if in_title[i] else 1.0, marker if marked[i] else 1.0
        if product:
            boost = of_marker * of_title
        elif marker == 1.0 or title == 1.0:  # a sum of one
            boost = of_title if marker == 1.0 else of_marker
        else:
            boost = of_marker + of_title
        weights[i] = np.int64(np.rint(weight * boost * FIXED_POINT))
    return weights


_CHOICES = {
    "tf": ("raw", "relative", "log"),
    "idf": ("on", "off"),
    "levels": ("on", "off"),
    "pos": ("on", "off"),
    "with_title": ("on", "off"),
    "marker_by": ("sentence", "word"),
    "length": ("off", "gauss", "gauss-c", "minmax"),
    "combine": ("product", "sum"),
    "hash": HASHES,
}
_NUMBERS: dict[str, Callable[[str], float]] = {"title": float, "marker": float, "min_chars": int}
SETTINGS = (*_CHOICES, *_NUMBERS)


def _read(name: str, value: str) -> object:
    """The value of a scheme's field as people write it."""
    if name in _NUMBERS:
        try:
            number = _NUMBERS[name](value)
        except ValueError:
            number = 0
        if not 1 <= number <= MAX:
            raise ConfigurationError(f"{name} is a number from 1 to {MAX}, got {value!r}")
        return number
    if name not in _CHOICES:
        raise ConfigurationError(f"a scheme has {', '.join(SETTINGS)}, got {name!r}")
    if value not in _CHOICES[name]:
        raise ConfigurationError(f"{name} is one of {', '.join(_CHOICES[name])}, got {value!r}")
    if "on" in _CHOICES[name]:
        return value == "on"
    return "" if value == "off" else value


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme(name="twinsieve", tf="log", idf=True, title=5.0, marker=2.0, min_chars=2),
        Scheme(name="tf"),
        Scheme(name="levels", idf=True, levels=True),
        Scheme(name="wang2019", tf="relative", idf=True, length="gauss", with_title=False),
        Scheme(name="zhang2020", tf="relative", idf=True, pos=True, length="minmax", marker=5.0, title=5.0),
        Scheme(name="seed-java", with_title=False, hash="java"),
    )
}


def scheme_named(name: str, *, without: Iterable[str] = (), settings: Iterable[str] = ()) -> Scheme:
    """Return the scheme `name`, fields set by `settings` and the factors `without` switched off.

    ConfigurationError for a name or value that does not exist, or a scheme that has nothing to set.
    """
    if name not in SCHEMES:
        raise ConfigurationError(f"the scheme is one of {', '.join(SCHEMES)}, got {name!r}")
    changes = [*settings, *without]
    if changes and name == "seed-java":
        raise ConfigurationError(f"seed-java is the seed's program as it was, and has no {changes[0]!r} to change")
    return SCHEMES[name].with_settings(settings).without(without)
