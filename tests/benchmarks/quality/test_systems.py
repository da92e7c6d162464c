"""The references of the compared systems: exact pairs and greedy deduplication."""

import random

import numpy as np

from benchmarks.quality.channels import keys_in_parts
from benchmarks.quality.edges import Edges, edges_sharing, edges_within
from benchmarks.quality.greedy_dedup import greedy_dedup
from benchmarks.quality.profiles import verdicts
from benchmarks.quality.scheme_words import word_fingerprints
from benchmarks.quality.shingles import body_of, shingle_sets
from dedup_service.core.evidence.keys import LEVELS, unpacked_keys
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.features.weighting_schemes import SCHEMES
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter

WORDS = list("春夏秋冬山水风云花草木石日月星雨雪江河海")


def page(number, text, url=None):
    """Return a page with this text."""
    url = url or f"https://a.example/{number}"
    return Page(url=url, canonical_url=url, id=str(number), text=text)


def texts(count, seed):
    """Return texts, many of which share runs of words."""
    rng = random.Random(seed)
    parts = ["".join(rng.choices(WORDS, k=12)) for _ in range(count)]
    return ["。".join(rng.sample(parts, 4)) for _ in range(count)]


def edge_set(edges):
    """Return the edges as a set of pairs."""
    return set(zip(edges.later.tolist(), edges.earlier.tolist(), strict=True))


def test_pairs_by_jaccard_agree_with_brute_force():
    """Counting shared shingles misses no pair and adds none."""
    pages = [page(number, text) for number, text in enumerate(texts(40, 2))]
    sets = shingle_sets(pages)
    members = [set(sets.values[a:b].tolist()) for a, b in zip(sets.offsets, sets.offsets[1:], strict=False)]
    expected = {
        (j, i): len(members[i] & members[j]) / len(members[i] | members[j]) for j in range(40) for i in range(j)
    }
    found = sets.alike(0.1)
    assert edge_set(found) == {pair for pair, value in expected.items() if value >= 0.1}
    assert np.allclose(found.likeness, [expected[pair] for pair in zip(found.later, found.earlier, strict=True)])
    assert np.allclose(sets.jaccard(found.later, found.earlier), found.likeness)


def test_pages_that_share_keys_give_one_edge():
    """Its likeness is the number of shared keys."""
    owners = np.array([0, 0, 1, 1, 2, 3, 3])
    keys = np.array([7, 8, 7, 8, 8, 1, 1], np.uint64)
    found = edges_sharing(owners, keys)
    assert list(zip(found.later, found.earlier, found.likeness, strict=True)) == [(1, 0, 2), (2, 0, 1), (2, 1, 1)]


def test_absent_fingerprints_have_no_edges():
    """A page without features has no distance, rather than the distance of the value 0."""
    found = edges_within(np.array([0, 1, 0, 3], np.uint64), np.array([True, True, False, True]), 2)
    assert edge_set(found) == {(1, 0), (3, 0), (3, 1)}


def test_eight_keys_are_the_first_of_each_part():
    """The measured channel with 8 keys is the first level of what the filter uses."""
    fingerprinter = build_fingerprinter()
    pages = [page(number, text * 3) for number, text in enumerate(texts(5, 3))]
    sets = shingle_sets(pages)
    owners, keys = keys_in_parts(sets, 8)
    for number, item in enumerate(pages):
        shipped = unpacked_keys(fingerprinter.prepare(item).keys, LEVELS)[:, 0]
        assert keys[owners == number].tolist() == [int(key) for key in shipped if key]


def test_greedy_dedup_gives_the_verdicts_of_the_filter():
    """The filter decides by distance in one channel, over pages with repeated URLs."""
    rng = random.Random(5)
    prepared = []
    for number in range(200):
        value = rng.choice([0, 1 << 40, (1 << 64) - 1]) ^ sum(1 << rng.randrange(64) for _ in range(rng.randrange(5)))
        item = page(number, "", url=f"https://a.example/{rng.randrange(120)}")
        prepared.append(PreparedPage(item, Fingerprint(words=value & (1 << 64) - 1), body_hash=rng.randrange(150)))
    kinds = {VerdictKind.DUPLICATE, VerdictKind.UNCHANGED, VerdictKind.UPDATED}
    decided = verdicts(prepared, rule_for("words", k=3), "test")
    values = np.array([item.fingerprint.words for item in prepared], np.uint64)
    edges = edges_within(values, np.ones(len(values), np.bool_), 3)
    named = greedy_dedup(prepared, edges)
    flagged = {verdict.id: verdict.duplicate_of for verdict in decided if verdict.kind in kinds}
    assert flagged.keys() == named.keys()
    duplicates = {verdict.id for verdict in decided if verdict.kind is VerdictKind.DUPLICATE}
    for name, original in named.items():
        if name not in duplicates:
            assert flagged[name] == original


def test_the_original_is_the_most_similar_kept_page_the_earliest_of_equals():
    """A duplicate is never an original."""
    pages = [PreparedPage(page(number, ""), Fingerprint(), number) for number in range(5)]
    edges = Edges(np.array([2, 2, 3, 4, 4]), np.array([0, 1, 2, 0, 1]), np.array([0.5, 0.9, 1.0, 0.7, 0.7]))
    assert greedy_dedup(pages, edges) == {"2": "1", "4": "0"}


def test_the_body_is_compared_without_a_headline():
    """The exact comparison uses the same text as the sketch."""
    item = Page(url="u", canonical_url="u", id="i", title="新车站启用", text="新车站启用\n首班列车七点发出。")
    assert body_of(item) == "首班列车七点发出。"


def test_the_exact_comparison_has_the_shingles_of_the_evidence():
    """The number of shingles is the same."""
    for text in (
        "转发：新车站今日启用，首班列车七点从新站台发出。",
        "新车站启用\n首班列车七点发出😀。",
        "A ＦＵＬＬ width line.",
    ):
        item = Page(url="u", canonical_url="u", id="i", title="新车站启用", text=text)
        assert shingle_sets([item]).sizes.tolist() == [Evidence(build_fingerprinter().prepare(item).evidence).shingles]


def test_word_fingerprints_are_those_of_each_fingerprinter():
    """One segmentation for several schemes gives the same bits as one segmentation each."""
    spaces = [SpaceOptions(scheme=name) for name in SCHEMES] + [SpaceOptions(scheme="zhang2020", without=("title",))]
    title, text = "新车站今日启用", "但是，首班列车七点从新站台发出。The first train left at seven.\n总之，旅客很高兴。"
    item = Page(url="u", canonical_url="u", id="i", title=title, text=text)
    expected = [build_fingerprinter(options).fingerprint(item).words for options in spaces]
    assert word_fingerprints(spaces, item) == expected
