"""Read the tables that a space is made of, and build its fingerprinter.

`SpaceOptions` is what people choose: a scheme, a segmenter, tables of their own. It is small and can be
sent to worker processes; the tables are read where they are used, once per process.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features.idf import IdfTable
from dedup_service.core.features.lexicon import Lexicon
from dedup_service.core.features.weighting_schemes import scheme_named
from dedup_service.core.fingerprinter import Fingerprinter
from dedup_service.core.rules.profiles import PROFILES, parse_profile
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.space import PAIRS, Space, digest
from dedup_service.core.text.segmentation import (
    IcuSegmenter,
    ScriptSegmenter,
    Segmenter,
    UnicodeSegmenter,
    chinese_segmenter,
    parse_user_words,
    segmenter_version,
)

__all__ = ["SpaceOptions", "build_fingerprinter", "default_lexicon", "jieba_idf"]

_OF_THREAD = threading.local()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceOptions:
    """How fingerprints are to be made.

    scheme: a name of `core.features.weighting_schemes`; factors: fields of it as `name=value`; without: factors to
    switch off.
    segmenter: rjieba or jieba, for Chinese. unspaced: icu or pairs, for Japanese, Thai and other scripts without
    spaces; None is icu where icu4py is installed. bits: 64; 128 for single fingerprints, which no index takes.
    idf: a table that `twinsieve idf build` wrote; None is jieba's. user_words: a dictionary in jieba's format.
    """

    scheme: str = "twinsieve"
    factors: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    segmenter: str = "rjieba"
    unspaced: str | None = None
    bits: int = 64
    idf: str | None = None
    user_words: str | None = None


def build_fingerprinter(options: SpaceOptions | None = None) -> Fingerprinter:
    """Return this thread's fingerprinter of `options`; ConfigurationError names what cannot be read.

    The tables are read once per process and shared; each thread remembers the words that it has met for itself.
    """
    options = options or SpaceOptions()
    made: dict[SpaceOptions, Fingerprinter] = _OF_THREAD.__dict__.setdefault("made", {})
    if options not in made:
        made[options] = Fingerprinter(*_parts(options))
    return made[options]


@cache
def _parts(options: SpaceOptions) -> tuple[Space, Segmenter, Lexicon, IdfTable]:
    idf = _text(Path(options.idf), "IDF table") if options.idf else jieba_idf()
    user_words = _text(Path(options.user_words), "user dictionary") if options.user_words else ""
    lexicon = default_lexicon()
    icu = _cuts_by_icu(options.unspaced)
    space = Space(
        scheme=scheme_named(options.scheme, without=options.without, settings=options.factors),
        segmenter=segmenter_version(options.segmenter),
        converter=f"OpenCC {version('opencc')}",
        idf=digest(idf),
        stop_words=digest("\n".join(sorted(lexicon.stop_words))),
        markers=digest("\n".join(lexicon.markers)),
        user_words=digest(user_words),
        unspaced=segmenter_version("icu") if icu else PAIRS,
        bits=options.bits,
    )
    chinese = chinese_segmenter(options.segmenter, parse_user_words(user_words.splitlines()))
    spaced = UnicodeSegmenter()
    return space, ScriptSegmenter(chinese, IcuSegmenter(spaced) if icu else spaced), lexicon, IdfTable(idf)


def _cuts_by_icu(unspaced: str | None) -> bool:
    """Whether ICU cuts words; ConfigurationError for a name that is none. That ICU is missing its segmenter says."""
    if unspaced not in {None, "icu", PAIRS}:
        raise ConfigurationError(f"scripts without spaces are cut by icu or as pairs, got {unspaced!r}")
    return unspaced == "icu" or (unspaced is None and find_spec("icu4py") is not None)


@cache
def default_lexicon() -> Lexicon:
    """Return the stop words and marker words that come with the package."""
    folder = files("dedup_service.runtime").joinpath("data")
    texts = [folder.joinpath(name).read_text(encoding="utf-8") for name in ("stop_words.txt", "markers.txt")]
    return Lexicon.of(*(_entries(text.splitlines()) for text in texts))


def profile_named(name: str) -> MatchRule:
    """Return the profile of that name, or the one in the file of that name; ConfigurationError where it is neither."""
    if name in PROFILES:
        return PROFILES[name]
    if not Path(name).exists():
        raise ConfigurationError(f"there is no profile {name!r}: it is one of {', '.join(PROFILES)}, or a file")
    return parse_profile(_text(Path(name), "profile"))


@cache
def jieba_idf() -> str:
    """Return the IDF table that jieba ships (270,132 words), without importing jieba."""
    spec = find_spec("jieba")
    if spec is None or spec.origin is None:
        raise ConfigurationError("jieba is not installed, and its IDF table is the default: install it or give a table")
    return _text(Path(spec.origin).parent / "analyse" / "idf.txt", "IDF table")


def _entries(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if line.strip() and not line.startswith("#")]


def _text(path: Path, what: str) -> str:
    try:
        return path.read_bytes().decode().replace("\r\n", "\n")  # read_text takes ten times as long over 5 MB
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the {what} {path}: {error}") from error
