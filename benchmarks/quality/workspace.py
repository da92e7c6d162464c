"""The shared input of all parts: the data, the store, and pages prepared in any space.

Prepared pages and fingerprints are computed once and stored under the `space_id` and a digest of the code
that prepares them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from benchmarks.quality.baseline_features import BaselineFeatures, features_of
from benchmarks.quality.corpora import Corpora, HtmlTask
from benchmarks.quality.shingles import ShingleSets, shingle_sets
from benchmarks.quality.store import Store, digest_of_baselines, digest_of_code, digest_of_files
from benchmarks.quality.work import mapped
from dedup_service.core.extraction import extract, to_page
from dedup_service.core.page import Page, PreparedPage
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter

Value = TypeVar("Value")
SEED = 7
DEFAULT = SpaceOptions()
Words = tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]
"""Fingerprints uint64[n], and bool[n]: whether a page has one."""


@dataclass(frozen=True, slots=True)
class Channels:
    """The fingerprints of n pages by channel: uint64[n], and bool[n]: whether a page has one."""

    words: npt.NDArray[np.uint64]
    has_words: npt.NDArray[np.bool_]
    body: npt.NDArray[np.uint64]
    has_body: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Workspace:
    """The evaluation data, and everything computed from it so far."""

    corpora: Corpora
    store: Store
    processes: int = 2
    _held: dict[tuple[str, ...], Any] = field(default_factory=dict, repr=False)

    def bare(self) -> Self:
        """Return the same workspace with nothing loaded, for another process."""
        return type(self)(Corpora(self.corpora.folder), self.store, 1)

    @cached_property
    def data(self) -> str:
        """A digest of the data."""
        return digest_of_files(self.corpora.files())

    @property
    def html(self) -> list[Page]:
        """The pages of the HTML task, extracted."""

        def make() -> list[Page]:
            return mapped(_extracted, self.corpora.html, "extracting", self.processes)

        return self._once("html", make)

    def pages(self, task: str) -> list[Page]:
        """Return the pages of a task: stream, pieces, pairs, html or natural."""
        corpora = self.corpora
        return {
            "stream": lambda: corpora.stream,
            "pieces": lambda: corpora.pieces,
            "pairs": lambda: corpora.pair_pages,
            "html": lambda: self.html,
            "natural": lambda: corpora.natural_pages,
        }[task]()

    def prepared(self, task: str, options: SpaceOptions = DEFAULT) -> list[PreparedPage]:
        """Return the pages of a task, prepared in the space of `options`, without their texts."""
        space = build_fingerprinter(options).space_id

        def make() -> list[PreparedPage]:
            return mapped(partial(_prepared, options), self.pages(task), f"{task}: {space}", self.processes)

        return self._once(f"prepared-{task}-{space}", make)

    def channels(self, task: str) -> Channels:
        """Return the fingerprints of a task in the default space as arrays."""
        found = [page.fingerprint for page in self.prepared(task)]
        return Channels(*_array([item.words for item in found]), *_array([item.body for item in found]))

    def words(self, task: str, spaces: Sequence[SpaceOptions]) -> list[Words]:
        """Return the fingerprints of the `words` channel in each of `spaces`."""
        names = [build_fingerprinter(options).space_id for options in spaces]

        def make() -> list[list[int | None]]:
            label = f"{task}: words of {len(spaces)} spaces"
            return mapped(partial(_words, tuple(spaces)), self.pages(task), label, self.processes)

        rows = self._once(f"words-{task}", make, names)
        return [_array([row[number] for row in rows]) for number in range(len(spaces))]

    def shingles(self, task: str) -> ShingleSets:
        """Return the sets of 5-grams of the pages of a task."""
        if ("shingles", task) not in self._held:
            self._held["shingles", task] = shingle_sets(self.pages(task))
        found: ShingleSets = self._held["shingles", task]
        return found

    def features(self, task: str) -> list[BaselineFeatures]:
        """Return the features of the compared packages for the pages of a task."""

        def make() -> list[BaselineFeatures]:
            return mapped(features_of, self.pages(task), f"{task}: compared packages", self.processes)

        return self._once(f"baselines-{task}", make, code=digest_of_baselines())

    def _once(
        self, name: str, make: Callable[[], Value], names: Sequence[str] = (), *, code: str | None = None
    ) -> Value:
        """Return a value from memory or the store, or compute it. code: digest of what computes it."""
        key = (name, *names)
        if key not in self._held:
            inputs = (*names, self.data, code or digest_of_code(preparing=True))
            self._held[key] = self.store.get(name, inputs, make)
        value: Value = self._held[key]
        return value


def _array(values: Sequence[int | None]) -> Words:
    return np.array([value or 0 for value in values], np.uint64), np.array([value is not None for value in values])


def _prepared(options: SpaceOptions, page: Page) -> PreparedPage:
    return replace(build_fingerprinter(options).prepare(page), page=replace(page, text=""))


def _words(spaces: Sequence[SpaceOptions], page: Page) -> list[int | None]:
    return [build_fingerprinter(options).fingerprint(page).words for options in spaces]


def _extracted(html: HtmlTask) -> Page:
    return to_page(extract(html.path.read_bytes()), html.url, id=html.id)
