"""The weighting schemes under the names that the command line and the space use.

A scheme says which factors it multiplies; each can be switched off, which is how the ablation in
docs/quality.md was made. Formulas and sources are in `factors`; the default, `twinsieve`, was chosen
by measurement: (1 + ln n) · idf · title 5 · marker 2 over words of two characters and more.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, mul
from typing import Self

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.simhash import fixed_point
from dedup_service.core.weighting import factors
from dedup_service.core.words import WordNeeds, WordTable

__all__ = ["FACTORS", "SCHEMES", "Scheme", "scheme_named"]

FACTORS = ("idf", "title", "marker", "pos", "length")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """Which factors make a word's weight.

    tf: raw, relative or log. idf: multiply by it. levels: replace tf·idf by its quintile in the page.
    title, marker: the boost, 1 for none; marker_by: sentence or word. pos: weigh by part of speech.
    length: "", gauss (2.207 is σ), gauss-c (2.207 is c = √2·σ) or minmax.
    combine: product, or sum, of the factors after tf·idf (S4 offers both).
    with_title: words of the title are features. least_chars: shorter words are none. hash: xxh3 or java.
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
    least_chars: int = 1
    hash: str = "xxh3"

    @property
    def needs(self) -> WordNeeds:
        """What the word table must tell."""
        marker_by = self.marker_by if self.marker != 1 else ""
        return WordNeeds(tags=self.pos, title=self.with_title, marker_by=marker_by, least_chars=self.least_chars)

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

    def weigh(self, table: WordTable) -> npt.NDArray[np.int64]:
        """Return the fixed-point weight of each word: int64[n]."""
        weights = factors.term_frequency(table, self.tf)
        if self.idf:
            weights = weights * table.idf
        if self.levels:
            weights = factors.levels(weights)
        boosts = [boost for _, boost in self.boosts(table)]
        if boosts:
            weights = weights * reduce(mul if self.combine == "product" else add, boosts)
        return fixed_point(weights)

    def boosts(self, table: WordTable) -> list[tuple[str, npt.NDArray[np.float64]]]:
        """Return the factors after tf·idf that are on, with the name of each: what an explanation lists."""
        found = []
        if self.pos:
            found.append(("pos", factors.part_of_speech(table)))
        if self.length == "minmax":
            found.append(("length", factors.minmax_length(table)))
        elif self.length:
            found.append(("length", factors.gauss_length(table, as_sigma=self.length == "gauss")))
        if self.marker != 1:
            found.append(("marker", factors.marker(table, self.marker)))
        if self.title != 1:
            found.append(("title", factors.title(table, self.title)))
        return found


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme(name="twinsieve", tf="log", idf=True, title=5.0, marker=2.0, least_chars=2),
        Scheme(name="tf"),
        Scheme(name="levels", idf=True, levels=True),
        Scheme(name="wang2019", tf="relative", idf=True, length="gauss", with_title=False),
        Scheme(name="zhang2020", tf="relative", idf=True, pos=True, length="minmax", marker=5.0, title=5.0),
        Scheme(name="seed-java", with_title=False, hash="java"),
    )
}


def scheme_named(name: str, *, without: Iterable[str] = ()) -> Scheme:
    """Return the scheme `name`, with the factors `without` switched off; ConfigurationError for an unknown name."""
    if name not in SCHEMES:
        raise ConfigurationError(f"the scheme is one of {', '.join(SCHEMES)}, got {name!r}")
    return SCHEMES[name].without(without)
