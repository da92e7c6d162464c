"""Load the tables that make up a space, and build its fingerprinter.

`SpaceOptions` is what a user chooses: a scheme, their own tables. It is small and can be sent to worker
processes; the tables are read where they are used, once per process.
"""

import threading
import tomllib
from collections import ChainMap
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec

from dedup_service._native import CHARACTER_TABLES, Preparer, Segmenter
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features.lexicon import Lexicon
from dedup_service.core.features.weighting_schemes import SCHEMES, scheme_named
from dedup_service.core.features.words import parse_user_words
from dedup_service.core.fingerprinter import Fingerprinter
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.profiles import RULES, parse_profile, rule_named
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.space import PAIRS, Space, digest
from dedup_service.core.text.icu_words import icu_version, icu_words
from dedup_service.runtime.jieba_dictionary import cache_folder, jieba_folder, parts_of_speech

_READING = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceOptions:
    """How fingerprints are made. Fingerprints of different options cannot be compared.

    Attributes:
        scheme: Name of a weighting scheme (`twinsieve`, `tf`, …).
        factors: Parameters of the scheme, as `name=value`.
        without: Factors to switch off.
        unspaced: How Japanese, Thai and other scripts without spaces are cut: `pairs` of characters, or `icu`.
        bits: Size of a fingerprint, 64 or 128. The index takes 64 only.
        idf: Path of a table written by `twinsieve idf build`. None is the table of jieba.
        user_words: Path of a dictionary in jieba's format.
    """

    scheme: str = "twinsieve"
    factors: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    unspaced: str = PAIRS
    bits: int = 64
    idf: str | None = None
    user_words: str | None = None


def prepare(page: Page, space: SpaceOptions | None = None) -> PreparedPage:
    """Fingerprint a page, for `NearDuplicateFilter.decide_many`. Can be called in any process and thread.

    Args:
        page: The page.
        space: How fingerprints are made; the same options as those of the filter.

    Returns:
        The page with its fingerprint and evidence; it can be pickled.

    Raises:
        ConfigurationError: A table cannot be read, or an option does not exist.
    """
    return build_fingerprinter(space).prepare(page)


def build_fingerprinter(options: SpaceOptions | None = None) -> Fingerprinter:
    """Return the fingerprinter for `options`, one for all threads; ConfigurationError names what cannot be read."""
    with _READING:  # a cache alone would let each of several threads read the tables
        return _built(options or SpaceOptions())


@cache
def _built(options: SpaceOptions) -> Fingerprinter:
    user_words = _text(Path(options.user_words), "user dictionary") if options.user_words else ""
    words = parse_user_words(user_words.splitlines())
    segmenter = Segmenter(jieba_folder(), cache_folder(), list(words))  # first, as making it takes 46 MB
    idf = _text(Path(options.idf), "IDF table") if options.idf else jieba_idf()
    lexicon = default_lexicon()
    icu = _uses_icu(options.unspaced)
    space = Space(
        scheme=scheme_named(options.scheme, without=options.without, settings=options.factors),
        segmenter=f"jieba {version('jieba')}",
        characters=CHARACTER_TABLES,
        idf=digest(idf),
        stop_words=digest("\n".join(lexicon.stop_words)),
        markers=digest("\n".join(lexicon.markers)),
        user_words=digest(user_words),
        unspaced=icu_version() if icu else PAIRS,
        bits=options.bits,
    )
    preparer = Preparer(
        space,
        segmenter,
        idf=idf,
        stop_words=lexicon.stop_words,
        markers=lexicon.markers,
        icu=icu_words if icu else None,
    )
    return Fingerprinter(space, preparer, lambda: ChainMap(words, parts_of_speech()))


def _uses_icu(unspaced: str) -> bool:
    """Whether ICU cuts words. ConfigurationError for an unknown name; a missing ICU is reported by its segmenter."""
    if unspaced not in {"icu", PAIRS}:
        raise ConfigurationError(f"scripts without spaces are cut by icu or as pairs, got {unspaced!r}")
    return unspaced == "icu"


@cache
def default_lexicon() -> Lexicon:
    """Return the stop words and marker words of the package."""
    folder = files("dedup_service.runtime").joinpath("data")
    texts = [folder.joinpath(name).read_text(encoding="utf-8") for name in ("stop_words.txt", "markers.txt")]
    return Lexicon.from_lists(*(_entries(text.splitlines()) for text in texts))


def profile_named(name: str) -> MatchRule:
    """Return the rule that `name` names, or the one in the file `name`; ConfigurationError if there is neither."""
    if (rule := rule_named(name)) is not None:
        return rule
    if not _is_there(Path(name)):
        raise ConfigurationError(
            f"there is no profile {name!r}: give one of {', '.join(RULES)}, also with a radius (words:3), "
            "combined:.9, or a file"
        )
    return parse_profile(_text(Path(name), "profile"))


class _SpaceFile(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of a space file, as those of `SpaceOptions`."""

    scheme: str = "twinsieve"
    factors: dict[str, str | int | float] = {}
    without: list[str] = []
    unspaced: str = PAIRS
    bits: Literal[64, 128] = 64
    idf: str | None = None
    user_words: str | None = None


def space_named(name: str) -> SpaceOptions:
    """Return the space of the weighting scheme `name`, or the one in the TOML file `name`.

    Paths in a file are relative to its folder. ConfigurationError names the file, the field and the remedy.
    """
    if name in SCHEMES:
        return SpaceOptions(scheme=name)
    path = Path(name)
    if not _is_there(path):
        raise ConfigurationError(f"there is no space {name!r}: give one of {', '.join(SCHEMES)}, or a file")
    try:
        values = msgspec.convert(_fields(_text(path, "space")), _SpaceFile)
        factors = tuple(f"{factor}={value}" for factor, value in values.factors.items())
        scheme_named(values.scheme, without=values.without, settings=factors)
        _uses_icu(values.unspaced)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, ConfigurationError) as error:
        fields = ", ".join(_SpaceFile.__struct_fields__)
        raise ConfigurationError(f"{name}: {error}; a space file has the fields {fields}: correct it") from None
    return SpaceOptions(
        scheme=values.scheme,
        factors=factors,
        without=tuple(sorted(set(values.without))),
        unspaced=values.unspaced,
        bits=values.bits,
        idf=None if values.idf is None else str(path.parent / values.idf),
        user_words=None if values.user_words is None else str(path.parent / values.user_words),
    )


def _fields(toml: str) -> dict[str, object]:
    """Return what a file has; ConfigurationError for an empty one, which was hardly meant as the defaults."""
    fields = tomllib.loads(toml)
    if not fields:
        raise ConfigurationError("it is empty")
    return fields


def space_of(name: str | None, idf: str | None = None) -> SpaceOptions:
    """Return the space `name`, by default that of all defaults, with the table `idf`, if given, for its own."""
    space = SpaceOptions() if name is None else space_named(name)
    return replace(space, idf=idf or space.idf)


def jieba_idf() -> str:
    """Return the IDF table that jieba ships (270,132 words), without importing jieba."""
    return _text(jieba_folder() / "analyse" / "idf.txt", "IDF table")


def _entries(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if line.strip() and not line.startswith("#")]


def _is_there(path: Path) -> bool:
    """Whether there is such a file; a name that is too long, or that has a null byte, names none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _text(path: Path, what: str) -> str:
    """Return the text of a file, without a byte order mark; ConfigurationError if it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")  # read_text takes ten times as long
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the {what} {path}: {error}") from error
