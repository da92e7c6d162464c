"""Reads the dictionary and the hidden Markov model of the installed jieba package, without importing it.

To make arrays of them takes some seconds, so they are kept in a file of the user's cache folder, named by a digest of
what they are made of, with a checksum; a file that is damaged is made again. Without a folder that can be written they
are made in every process: the start is slower, but nothing fails.
"""

import ast
import io
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import xxhash

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.text.segmentation.chinese import USER_FREQUENCY, ChineseSegmenter
from dedup_service.core.text.segmentation.jieba_model import HiddenMarkovModel, JiebaModel, ModelArrays

FORMAT = 1
"""Of the cached file; incremented when the arrays change."""

_CHECKSUM_BYTES = 16


def chinese_segmenter(user_words: Mapping[str, str] | None = None) -> ChineseSegmenter:
    """Return the segmenter of the installed jieba with a user's words (word → part of speech).

    Raises ConfigurationError if jieba is not installed, or not as its release 0.42 is.
    """
    words = dict(user_words or {})
    return ChineseSegmenter(_model(frozenset(words)), lambda: _tags() | words)


def jieba_folder() -> Path:
    """Return the folder of the installed jieba; ConfigurationError if there is none."""
    spec = find_spec("jieba")
    if spec is None or spec.origin is None:
        raise ConfigurationError("jieba is not installed, whose dictionary cuts Chinese text: install it")
    return Path(spec.origin).parent


def cache_folder() -> Path | None:
    """Return where arrays are kept: TWINSIEVE_CACHE_DIR, or `twinsieve` in the user's cache folder.

    None if the user has no home, as one that a container was given by its number.
    """
    if named := os.environ.get("TWINSIEVE_CACHE_DIR"):
        return Path(named)
    try:
        folder = Path(platformdirs.user_cache_dir("twinsieve"))
    except RuntimeError:  # there is no home
        return None
    return folder if folder.is_absolute() else None  # earlier releases say `~/.cache/twinsieve` then


@cache
def _model(user_words: frozenset[str]) -> JiebaModel:
    sources = _read("dict.txt"), *(_read(f"finalseg/prob_{name}.py") for name in ("start", "trans", "emit"))
    made_of = xxhash.xxh3_128("\n".join(sorted(user_words)).encode("utf-8", "surrogatepass"))
    for source in sources:
        made_of.update(source.data)
    folder = cache_folder()
    path = None if folder is None else folder / f"jieba-{FORMAT}-{made_of.hexdigest()}.npz"
    arrays = None if path is None else _cached(path)
    if arrays is None:
        model = _made(user_words, *sources)
        if path is not None:
            _keep(path, model.arrays)
        return model
    return JiebaModel(arrays)


@dataclass(frozen=True, slots=True)
class _Source:
    """A file of jieba."""

    path: Path
    data: bytes


def _read(name: str) -> _Source:
    path = jieba_folder() / name
    try:
        return _Source(path, path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"cannot read {path} of jieba: {error}") from error


def _made(
    user_words: frozenset[str], dictionary: _Source, start: _Source, transitions: _Source, emissions: _Source
) -> JiebaModel:
    """Return the model of the dictionary with a user's words, as jieba's `add_word` adds them."""
    frequencies: dict[str, int] = {}
    total = USER_FREQUENCY * len(user_words)
    for word, frequency, _ in _entries(dictionary):
        frequencies[word] = frequency
        total += frequency
    frequencies |= dict.fromkeys(user_words, USER_FREQUENCY)
    model = HiddenMarkovModel(*(_literal(source) for source in (start, transitions, emissions)))
    return JiebaModel.of(frequencies, total, model)


@cache
def _tags() -> dict[str, str]:
    """Return the part of speech of each word."""
    return {word: tag for word, _, tag in _entries(_read("dict.txt"))}


def _entries(dictionary: _Source) -> Iterator[tuple[str, int, str]]:
    """Yield the words of the dictionary with their frequencies and parts of speech."""
    try:
        for line in dictionary.data.decode().splitlines():
            word, frequency, tag = line.split(" ")
            yield word, int(frequency), tag
    except ValueError as error:
        raise ConfigurationError(f"cannot read {dictionary.path} of jieba: {error}") from error


def _literal(source: _Source) -> Any:
    """Return the value of `P` in a module of constants."""
    try:
        for statement in ast.parse(source.data).body:
            if isinstance(statement, ast.Assign):
                return ast.literal_eval(statement.value)
    except (ValueError, SyntaxError) as error:
        raise ConfigurationError(f"cannot read {source.path} of jieba: {error}") from error
    raise ConfigurationError(f"cannot read {source.path} of jieba: it has no values")


def _cached(path: Path) -> ModelArrays | None:
    """Return the arrays in a file, None if there is none that can be used."""
    try:
        data = path.read_bytes()
        if xxhash.xxh3_128_digest(data[_CHECKSUM_BYTES:]) != data[:_CHECKSUM_BYTES]:
            return None
        with np.load(io.BytesIO(data[_CHECKSUM_BYTES:]), allow_pickle=False) as arrays:
            values = {name: arrays[name] for name in ModelArrays._fields}
            return ModelArrays(**values | {"unknown": float(values["unknown"])})
    except (OSError, ValueError, KeyError):
        return None


def _keep(path: Path, arrays: ModelArrays) -> None:
    """Keep arrays in a file, or do nothing if that is not possible; processes that start together may all do it."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays._asdict())
    data = buffer.getvalue()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            try:
                file.write(xxhash.xxh3_128_digest(data) + data)
                file.close()
                Path(file.name).replace(path)
            except OSError:
                Path(file.name).unlink(missing_ok=True)
                raise
