"""Pairs by the quantities of the score: labelled ones, copies of the stream, and pages near to each other."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.quality.corpora import Corpora, read_labelled, read_lines, read_pages
from benchmarks.quality.profiles import verdicts
from benchmarks.quality.shingles import shingle_sets
from dedup_service.core.evaluation.fitting import Flags, Floats, scores
from dedup_service.core.evaluation.scoring import LEFT_OUT
from dedup_service.core.evidence.card import Card
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.extraction import extract, to_page
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.rules.rule import DistanceBound, MatchRule
from dedup_service.core.url import host_hash
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.resources import build_fingerprinter

Pair = tuple[PreparedPage, PreparedPage, bool]
"""Two pages, and whether one is a copy of the other."""

SAMPLED = 0.4
"""Share of the copies of the stream that are fitted."""

NEAREST = MatchRule(
    (DistanceBound(words=3),),
    keys=True,
    verified=(MatchRow(name="compared", min_letters=160, jaccard=0.15, score=-3.0),),
)
"""Any page that shares a little with another one.

Below a score of -3 by the card as it is there are so many that they would outweigh those nearby. Because of this
bound, points that are fitted again differ by up to .04.
"""


@dataclass(frozen=True, slots=True)
class PairSet:
    """Pairs of a set.

    quantities: float64[n, 9]. same: bool[n], whether the bodies are equal, which makes any pair a
    match. copies: bool[n], the truth. jaccard: float64[n], exact, of 5-grams of letters; empty if not needed.
    """

    name: str
    quantities: Floats
    same: Flags
    copies: Flags
    jaccard: Floats

    def scores(self, card: Card) -> Floats:
        """Return the score of each pair; infinite if the bodies are equal."""
        return np.where(self.same, np.inf, scores(card, self.quantities))


def pair_set(name: str, pairs: Sequence[Pair], jaccard: Floats | None = None) -> PairSet:
    """Return the quantities of pairs of prepared pages, each with whether it is a copy."""
    found = []
    for one, other, _ in pairs:
        same_host = host_hash(one.page.canonical_url) == host_hash(other.page.canonical_url)
        similarity = Similarity(Evidence(one.evidence), Evidence(other.evidence), same_host=same_host)
        found.append([value for _, value, _ in similarity.points])
    same = [one.body_hash is not None and one.body_hash == other.body_hash for one, other, _ in pairs]
    copies = np.array([copy for *_, copy in pairs], np.bool_)
    return PairSet(name, np.array(found), np.array(same), copies, np.empty(0) if jaccard is None else jaccard)


def labelled(name: str, folder: Path) -> PairSet:
    """Return the labelled pairs of a folder, without grey ones and made ones."""
    file, fingerprinter = folder / "pages.jsonl", build_fingerprinter()
    rows = list(read_lines(file))
    pages = [to_page(extract(r["html"]), r["url"], id=r["id"]) for r in rows] if "html" in rows[0] else read_pages(file)
    places = {page.id: place for place, page in enumerate(pages)}
    prepared = fingerprinter.prepare_all(pages)
    scored = [
        (places[pair.a], places[pair.b], pair.duplicate)
        for pair in read_labelled(folder / "pairs.jsonl")
        if pair.duplicate is not None and not pair.strata[0].startswith("kind made")
    ]
    ones, others = (np.array(column, np.int64) for column in list(zip(*scored, strict=True))[:2])
    pairs = [(prepared[one], prepared[other], copy) for one, other, copy in scored]
    return pair_set(name, pairs, shingle_sets(pages).jaccard(ones, others))


def nearest(pages: Sequence[Page], rule: MatchRule) -> tuple[dict[str, PreparedPage], dict[str, str]]:
    """Return the prepared pages by id, and page → the page of which `rule` calls it a duplicate."""
    prepared = build_fingerprinter().prepare_all(pages)
    named = {
        found.id: found.duplicate_of
        for found in verdicts(prepared, rule, f"pages of {pages[0].url}")
        if found.kind is VerdictKind.DUPLICATE and found.duplicate_of is not None
    }
    return {item.page.id: item for item in prepared}, named


def stream_set(corpora: Corpora) -> PairSet:
    """Return sampled copies of the stream with their originals, and other pages with those nearest to them."""
    pages, named = nearest(corpora.stream, NEAREST)
    rng, pairs = random.Random(1), []
    for row in read_lines(corpora.folder / "stream" / "truth.jsonl"):
        page, original, strength = row["id"], row["duplicate_of"], row["strength"]
        if original is None and page in named:
            pairs.append((pages[page], pages[named[page]], False))
        changed = strength and strength not in LEFT_OUT and row["operator"] not in {"exact", "title"}
        if original is not None and changed and rng.random() < SAMPLED:
            pairs.append((pages[page], pages[original], True))
    return pair_set("stream", pairs)
