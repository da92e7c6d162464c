"""Alternative systems on the same tasks: packages with their defaults, and the published schemes.

MinHash LSH: the pairs that share a bucket; with exact Jaccard, each of these is then compared exactly.
Shingle: pages that share a sampled shingle, by the Jaccard similarity of their samples (Broder 1997, as
Zhang & He ran it).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.quality.baseline_features import PERMUTATIONS, TOP_TERMS, BaselineFeatures
from benchmarks.quality.edges import Edges, distances, edges_sharing, edges_within
from benchmarks.quality.shingles import ShingleSets
from benchmarks.quality.systems import Measure, System, TaskScore, judge, pairs_of_task
from benchmarks.quality.work import progress
from benchmarks.quality.workspace import Words, Workspace
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Combined, jaccard
from dedup_service.runtime.resources import SpaceOptions

WIDEST = 16
"""The largest k among which the best one is chosen."""

SEEDS = ("levels", "wang2019", "zhang2020", "seed-java", "tf")
SPACES = {f"{name}, words": SpaceOptions(scheme=name) for name in SEEDS}
SHARES = tuple(round(0.3 + 0.05 * step, 2) for step in range(13))
Integers = npt.NDArray[np.int64]
PairSimilarity = Callable[[Integers, Integers], npt.NDArray[np.float64]]
"""Places of pages int64[n], int64[n] → similarities float64[n]."""


def compute(workspace: Workspace) -> list[TaskScore]:
    """Return the rows of all systems on all tasks."""
    rows: list[TaskScore] = []
    systems = list(SYSTEMS)
    with progress("systems compared", len(systems)) as advance:
        for make in systems:
            for system in make(workspace):
                rows += judge(workspace, system)
            advance()
    return rows


def exact(workspace: Workspace) -> Iterator[System]:
    """Yield exact 5-gram Jaccard of every pair: a reference, too slow to be a system."""
    yield System(
        "exact 5-gram Jaccard, every pair",
        _by_task(workspace, lambda task: workspace.shingles(task).alike(0.3), _exactly(workspace)),
        SHARES,
        (0.5, 0.65),
    )


def schemes(workspace: Workspace, spaces: Mapping[str, SpaceOptions]) -> Iterator[System]:
    """Yield SimHash of the words in each space, by label, at k = 3 and the best k ≤ 7."""
    found = {task: workspace.words(task, list(spaces.values())) for task in workspace.corpora.tasks}
    for number, name in enumerate(spaces):
        values = {task: words[number] for task, words in found.items()}
        yield _simhash(workspace, name, values.__getitem__, 7)


def _seeds(workspace: Workspace) -> Iterator[System]:
    yield from schemes(workspace, SPACES)
    yield _combined(workspace)


def _combined(workspace: Workspace) -> System:
    """Return Wang & Wang's combined similarity; for pages without metadata it equals k = 3."""
    rule = Combined(900)
    found: dict[str, Measure] = {}
    for task in workspace.corpora.tasks:
        words, present = workspace.words(task, list(SPACES.values()))[SEEDS.index("wang2019")]
        metadata = [Evidence(page.evidence).metadata for page in workspace.prepared(task)]

        def similar(one: Integers, other: Integers, far: Integers, metadata: list[bytes] = metadata) -> list[Fraction]:
            return [
                rule.similarity(h, jaccard(metadata[a], metadata[b])) if h <= rule.radius else Fraction(0)
                for a, b, h in zip(one.tolist(), other.tolist(), far.tolist(), strict=True)
            ]

        if task == "stream":
            edges = edges_within(words, present, rule.radius)
            likeness = similar(edges.later, edges.earlier, (-edges.likeness).astype(np.int64))
            found[task] = Measure(edges=Edges(edges.later, edges.earlier, _met(likeness, rule)))
        else:
            _, one, other = pairs_of_task(workspace, task)
            far = _far(words, present, one, other)
            found[task] = Measure(likeness=_met(similar(one, other, far), rule))
    return System("wang2019, combined with metadata, μ = .9", found, (1.0,), (1.0,), "≥ .25")


def _met(similar: Sequence[Fraction], rule: Combined) -> npt.NDArray[np.float64]:
    return np.array([float(value >= rule.threshold) for value in similar])


def _simhashes(workspace: Workspace) -> Iterator[System]:
    yield _simhash(workspace, "PyPI simhash (4-grams)", _fingerprints(workspace, lambda page: page.pypi), WIDEST)
    yield _simhash(workspace, "TF SimHash (words)", _fingerprints(workspace, lambda page: page.tf), WIDEST)
    for number, maximum in enumerate(TOP_TERMS):
        values = _fingerprints(workspace, partial(_of_terms, number))
        yield _simhash(workspace, f"jieba TF-IDF SimHash (top {maximum})", values, WIDEST)


def _simhash(
    workspace: Workspace,
    name: str,
    values: Callable[[str], Words],
    widest: int,
) -> System:
    def edges(task: str) -> Edges:
        return edges_within(*values(task), widest)

    def alike(task: str) -> PairSimilarity:
        found = values(task)
        return lambda one, other: -_far(*found, one, other).astype(np.float64)

    thresholds = tuple(-float(k) for k in range(widest + 1))
    return System(name, _by_task(workspace, edges, alike), thresholds, (-3.0,), "k = {:g}")


def _far(values: npt.NDArray[np.uint64], present: npt.NDArray[np.bool_], one: Integers, other: Integers) -> Integers:
    return np.where(present[one] & present[other], distances(values[one], values[other]), 64)


def _fingerprints(workspace: Workspace, chosen: Callable[[BaselineFeatures], int | None]) -> Callable[[str], Words]:
    def values(task: str) -> Words:
        found = [chosen(page) for page in workspace.features(task)]
        return np.array([value or 0 for value in found], np.uint64), np.array([value is not None for value in found])

    return values


def _of_terms(number: int, page: BaselineFeatures) -> int | None:
    return page.tfidf[number]


def _md5(workspace: Workspace) -> Iterator[System]:
    def hashes(task: str) -> npt.NDArray[np.uint64]:
        return np.array([int(page.md5[:16], 16) for page in workspace.features(task)], np.uint64)

    def alike(task: str) -> PairSimilarity:
        found = hashes(task)
        return lambda one, other: (found[one] == found[other]).astype(np.float64)

    def edges(task: str) -> Edges:
        found = hashes(task)
        return edges_sharing(np.arange(len(found)), found)

    yield System("MD5 of the normalised text", _by_task(workspace, edges, alike), (1.0,), (1.0,), "equal")


def _shingle(workspace: Workspace) -> Iterator[System]:
    def sets(task: str) -> ShingleSets:
        kept = [page.sampled for page in workspace.features(task)]
        offsets = np.r_[0, np.cumsum([len(values) for values in kept])].astype(np.int64)
        return ShingleSets(offsets, np.concatenate(kept))

    measures = _by_task(workspace, lambda task: sets(task).alike(SHARES[0]), lambda task: sets(task).jaccard)
    yield System("sampled Shingle (3 words, 1 of 8)", measures, SHARES, (0.5,))


def _minhash(workspace: Workspace) -> Iterator[System]:
    def values(task: str, raw: bool) -> npt.NDArray[np.uint32]:
        return np.array([page.minhash_raw if raw else page.minhash for page in workspace.features(task)])

    for threshold, raw in ((0.5, False), (0.5, True), (0.7, False)):
        found = {task: _buckets(values(task, raw), threshold) for task in workspace.corpora.tasks}
        name = f"datasketch MinHash LSH {threshold:g}" + (", raw text" if raw else "")
        yield _of_buckets(workspace, name, found, None)
        if not raw:
            yield _of_buckets(workspace, f"{name} + exact Jaccard", found, SHARES)


def _of_buckets(workspace: Workspace, name: str, found: dict[str, Edges], shares: Sequence[float] | None) -> System:
    """Return the pairs of LSH as a system: all of them, or those above a threshold of exact Jaccard."""
    measures = {}
    for task, edges in found.items():
        likeness = edges.likeness
        if shares is not None:
            likeness = workspace.shingles(task).jaccard(edges.later, edges.earlier)
        judged = Edges(edges.later, edges.earlier, likeness)
        if task == "stream":
            measures[task] = Measure(edges=judged)
        else:
            _, one, other = pairs_of_task(workspace, task)
            measures[task] = Measure(likeness=_looked_up(judged, one, other))
    if shares is None:
        return System(name, measures, (0.0,), (0.0,), "as given")
    return System(name, measures, shares, (0.5,))


def _buckets(values: npt.NDArray[np.uint32], threshold: float) -> Edges:
    """Return the pairs of datasketch's LSH, with the similarity that their MinHashes estimate."""
    from datasketch import MinHash, MinHashLSH  # type: ignore[import-untyped]

    index = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
    later, earlier = [], []
    empty = values.min(axis=1) == values.max(axis=1)
    model = MinHash(num_perm=PERMUTATIONS, seed=1)
    for place in np.flatnonzero(~empty).tolist():
        minhash = model.copy()
        minhash.hashvalues = values[place].astype(model.hashvalues.dtype)
        for before in sorted(index.query(minhash)):
            later.append(place)
            earlier.append(before)
        index.insert(place, minhash, check_duplication=False)
    one, other = np.array(later, np.int64), np.array(earlier, np.int64)
    estimates = [(values[a] == values[b]).mean() for a, b in zip(later, earlier, strict=True)]
    return Edges(one, other, np.array(estimates, np.float64))


def _looked_up(edges: Edges, one: Integers, other: Integers) -> npt.NDArray[np.float64]:
    """Return the likeness of each pair, −1 for a pair without an edge."""
    known = dict(zip(zip(edges.later.tolist(), edges.earlier.tolist(), strict=True), edges.likeness, strict=True))
    pairs = zip(np.maximum(one, other).tolist(), np.minimum(one, other).tolist(), strict=True)
    return np.array([known.get(pair, -1.0) for pair in pairs])


def _exactly(workspace: Workspace) -> Callable[[str], PairSimilarity]:
    return lambda task: workspace.shingles(task).jaccard


def _by_task(
    workspace: Workspace, edges: Callable[[str], Edges], alike: Callable[[str], PairSimilarity]
) -> dict[str, Measure]:
    measures = {"stream": Measure(edges=edges("stream"))}
    for task in workspace.corpora.labelled:
        _, one, other = pairs_of_task(workspace, task)
        measures[task] = Measure(likeness=alike(task)(one, other))
    return measures


SYSTEMS = (_md5, _simhashes, _shingle, _minhash, _seeds, exact)
