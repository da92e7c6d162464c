"""The weighting schemes, under the names that the command line and the space use.

A `Scheme` makes the `words` channel of a page. All but `seed-java` are `WeightedScheme`s, which multiply
factors; each factor can be switched off, which is how the ablation in docs/quality.md was made. Formulas and
sources are in `weighting_factors`. The default, `twinsieve`, was chosen by measurement: (1 + ln n) · idf ·
title 5 · marker 2 over words of two characters and more.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import reduce
from itertools import repeat
from operator import add, mul
from typing import Any, Protocol, Self

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features import weighting_factors
from dedup_service.core.features.hashing import HASHES, word_hasher
from dedup_service.core.features.seed_java import SeedJavaScheme
from dedup_service.core.features.simhash import FIXED_POINT, fixed_point, simhash
from dedup_service.core.features.words import Feature, WordTable

MAX_NUMBER = 1000
"""Limit on boosts: with a larger one, a single word would decide alone, and sums could overflow."""

FACTORS = ("idf", "title", "marker", "pos", "length")
"""The factors that can be switched off by name."""


class Scheme(Protocol):
    """Makes the `words` channel of a page: what a fingerprinter and a space ask of a scheme.

    Methods take the text as extracted, and `count_words`, which counts the words of the page. Counting takes most of
    the time of a page, so a scheme calls it at most once, and only if it weighs those words.
    """

    @property
    def name(self) -> str:
        """The name on the command line, and the first part of the `space_id`."""
        ...

    @property
    def hash(self) -> str:
        """The hash of words, one of HASHES."""
        ...

    @property
    def is_usual(self) -> bool:
        """Whether the crate weighs the words itself: by (1 + ln n), IDF, title and markers alone."""
        ...

    @property
    def pos(self) -> bool:
        """Whether the word table has parts of speech, and no modal particles."""
        ...

    def fingerprint(self, text: str, count_words: Callable[[], WordTable], *, bits: int) -> int | None:
        """Return the fingerprint of a page, below 2**bits; None where the page has no features."""
        ...

    def features(self, text: str, count_words: Callable[[], WordTable], limit: int) -> list[Feature]:
        """Return the `limit` heaviest features of a page, heaviest first."""
        ...

    def with_settings(self, settings: Iterable[str]) -> Self:
        """Return the scheme with fields set by `name=value`.

        Raises ConfigurationError for an unknown field or value.
        """
        ...

    def without(self, factors: Iterable[str]) -> Self:
        """Return the scheme with these factors switched off.

        Raises ConfigurationError for a factor that the scheme does not have.
        """
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the scheme as plain values, which become part of the `space_id`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedScheme:
    """A scheme that weighs each word by a product of factors.

    tf: raw, relative or log. idf: multiply by it. levels: replace tf·idf by its quintile in the page.
    title, marker: the boost, 1 for none; marker_by: sentence or word. pos: weigh by part of speech.
    length: "", gauss (2.207 is σ), gauss-c (2.207 is c = √2·σ) or minmax.
    combine: product, or sum, of the factors after tf·idf (Zhang & He 2020 offer both).
    with_title: words of the title are features. min_chars: shorter words are not. hash: xxh3 or java.
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
    def is_usual(self) -> bool:
        """Whether weights are (1 + ln n), times idf, title and marker."""
        return self.tf == "log" and not (self.levels or self.pos or self.length)

    def fingerprint(self, text: str, count_words: Callable[[], WordTable], *, bits: int) -> int | None:  # noqa: ARG002
        """Return the SimHash of the weighted words; None where there are none."""
        table, hash_word = count_words(), word_hasher(self.hash)
        return simhash([hash_word(word.word, bits) for word in table.words], self.weigh(table), bits=bits)

    def features(self, text: str, count_words: Callable[[], WordTable], limit: int) -> list[Feature]:  # noqa: ARG002
        """Return the `limit` heaviest words, heaviest first, those of equal weight in alphabetical order."""
        table = count_words()
        weights, boosts, words = self.weigh(table), self.boosts(table), table.words
        order = sorted(range(len(words)), key=lambda i: (-weights[i], words[i].word))[:limit]
        return [
            Feature(
                word=words[i].word,
                weight=round(weights[i] / FIXED_POINT, 6),
                count=words[i].count,
                idf=round(words[i].idf, 4),
                factors={name: round(values[i], 4) for name, values in boosts},
            )
            for i in order
        ]

    def without(self, factors: Iterable[str]) -> Self:
        """Return the scheme with some of FACTORS switched off.

        Raises ConfigurationError for any other name.
        """
        off = {"idf": {"idf": False}, "title": {"title": 1.0}, "marker": {"marker": 1.0}}
        off |= {"pos": {"pos": False}, "length": {"length": ""}}
        scheme = self
        for name in factors:
            if name not in off:
                raise ConfigurationError(f"a factor is one of {', '.join(FACTORS)}, got {name!r}")
            scheme = replace(scheme, **off[name])  # type: ignore[arg-type]
        return scheme

    def with_settings(self, settings: Iterable[str]) -> Self:
        """Return the scheme with fields set by `name=value`, such as title=3, combine=sum or hash=java.

        Raises ConfigurationError, which names the field and its choices.
        """
        scheme = self
        for setting in settings:
            name, _, value = setting.partition("=")
            scheme = replace(scheme, **{name: _parse(name, value)})  # type: ignore[arg-type]
        return scheme

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, as a space stores them.

        `least_chars` is the name of `min_chars` in every `space_id` there is.
        """
        values = asdict(self)
        values["least_chars"] = values.pop("min_chars")
        return values

    def weigh(self, table: WordTable) -> list[int]:
        """Return the fixed-point weight of each word."""
        weights = weighting_factors.term_frequency(table, self.tf)
        if self.idf:
            weights = [weight * word.idf for weight, word in zip(weights, table.words, strict=True)]
        if self.levels:
            weights = weighting_factors.levels(weights)
        if boosts := [boost for _, boost in self.boosts(table)]:
            combine = mul if self.combine == "product" else add
            boosted = map(reduce, repeat(combine), zip(*boosts, strict=True))
            weights = [weight * boost for weight, boost in zip(weights, boosted, strict=True)]
        return fixed_point(weights)

    def boosts(self, table: WordTable) -> list[tuple[str, list[float]]]:
        """Return the name of each factor after tf·idf that is on, with its value for each word."""
        boosts = []
        if self.pos:
            boosts.append(("pos", weighting_factors.part_of_speech(table)))
        if self.length == "minmax":
            boosts.append(("length", weighting_factors.minmax_length(table)))
        elif self.length:
            boosts.append(("length", weighting_factors.gauss_length(table, as_sigma=self.length == "gauss")))
        if self.marker != 1:
            boosts.append(("marker", weighting_factors.marker(table, self.marker)))
        if self.title != 1:
            boosts.append(("title", weighting_factors.title(table, self.title)))
        return boosts


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
"""The fields that can be set by name."""


def _parse(name: str, value: str) -> object:
    """Return the value of a field from its text form.

    Raises ConfigurationError for an unknown name or value.
    """
    if name in _NUMBERS:
        try:
            number = _NUMBERS[name](value)
        except ValueError:
            number = 0
        if not 1 <= number <= MAX_NUMBER:
            raise ConfigurationError(f"{name} is a number from 1 to {MAX_NUMBER}, got {value!r}")
        return number
    if name not in _CHOICES:
        raise ConfigurationError(f"a scheme has {', '.join(SETTINGS)}, got {name!r}")
    if value not in _CHOICES[name]:
        raise ConfigurationError(f"{name} is one of {', '.join(_CHOICES[name])}, got {value!r}")
    if "on" in _CHOICES[name]:
        return value == "on"
    return "" if value == "off" else value


_SCHEMES: tuple[Scheme, ...] = (
    WeightedScheme(name="twinsieve", tf="log", idf=True, title=5.0, marker=2.0, min_chars=2),
    WeightedScheme(name="tf"),
    WeightedScheme(name="levels", idf=True, levels=True),
    WeightedScheme(name="wang2019", tf="relative", idf=True, length="gauss", with_title=False),
    WeightedScheme(name="zhang2020", tf="relative", idf=True, pos=True, length="minmax", marker=5.0, title=5.0),
    SeedJavaScheme(),
)
SCHEMES = {scheme.name: scheme for scheme in _SCHEMES}
"""The schemes by name; the first one is the default."""


def scheme_named(name: str, *, without: Iterable[str] = (), settings: Iterable[str] = ()) -> Scheme:
    """Return the scheme `name` with fields set by `settings` and the factors `without` switched off.

    Raises ConfigurationError for an unknown name or value, and for a scheme that has nothing to set.
    """
    if name not in SCHEMES:
        raise ConfigurationError(f"the scheme is one of {', '.join(SCHEMES)}, got {name!r}")
    return SCHEMES[name].with_settings(settings).without(without)
