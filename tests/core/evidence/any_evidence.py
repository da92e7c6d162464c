"""Evidence of any kind for tests: related or not, sampled or not, empty, cut, or such as no page has."""

import struct
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

from dedup_service.core.evidence.packed import MAX_NUMBERS, MAX_SENTENCES, SKETCH_BYTES, Evidence
from dedup_service.core.verdict import Distance
from tests.made_evidence import evidence_of

HEADER = struct.Struct("<IIIIIQBBBH")


@dataclass(frozen=True)
class Fields:
    """What packed evidence has, in its order."""

    letters: int
    size: int
    shingles: int
    number_count: int
    sentence_count: int
    figures: int
    sketch: bytes
    sentences: tuple[int, ...]
    terms: tuple[int, ...]
    numbers: tuple[int, ...]
    metadata: bytes
    stream: bytes

    @property
    def packed(self) -> bytes:
        """The evidence, as `core.evidence.packed` says."""
        counts = len(self.numbers), len(self.sentences), len(self.terms), len(self.metadata)
        header = HEADER.pack(
            self.letters,
            self.size,
            self.shingles,
            self.number_count,
            self.sentence_count,
            self.figures,
            *counts,
        )
        samples = struct.pack(
            f"<{len(self.sentences)}I{len(self.terms)}H{len(self.numbers)}H",
            *self.sentences,
            *self.terms,
            *self.numbers,
        )
        return header + self.sketch + samples + self.metadata + self.stream


@cache
def stream_of(text: str, title: str) -> bytes:
    """Return the tokens of a page as bytes, which its evidence ends with."""
    evidence = Evidence(evidence_of(text, title))
    samples = 4 * len(evidence.sentence_values) + 2 * len(evidence.terms) + 2 * len(evidence.numbers)
    return evidence.packed[HEADER.size + SKETCH_BYTES + samples :]


def sample(values: st.SearchStrategy[Any], most: int, *, distinct: bool) -> st.SearchStrategy[tuple[Any, ...]]:
    """Samples of values: ascending, as pages have them, or now and then in any order."""
    drawn = st.one_of(st.lists(values, max_size=most, unique=distinct), st.lists(values, min_size=most, max_size=most))
    ascending = drawn.map(lambda of: tuple(sorted(set(of) if distinct else of)))
    return st.one_of(ascending, ascending, ascending, st.lists(values, max_size=12).map(tuple))


COUNTS = st.one_of(st.integers(0, 300), st.sampled_from([0, 1, 63, 64, 65, 128, 129, 2**31, 2**32 - 1]))
POOL = st.integers(0, 70).map(lambda place: place * 61_000_000 + place % 64)
WIDE_POOL = st.integers(0, 400).map(lambda place: place * 10_000_000 + place % 64)
SKETCHES = st.sampled_from([bytes(64), b"\x01" * 64, b"\x0f" * 50 + bytes(14), b"\xff" * 10 + b"\x01" * 54])
PASSAGES = [
    "The bridge in Lüneburg was closed for 12 days in May. ",
    "The bridge in Görlitz was closed for 30 days in June. ",
    "大桥将于5月20日通车，全长1200米。",
    "大桥将于6月3日通车，全长900米。",
    "Nobody was hurt, said the mayor. ",
]
STREAMS = st.one_of(
    st.just(bytes(7)),
    st.builds(
        stream_of,
        st.lists(st.sampled_from(PASSAGES), min_size=1, max_size=6).map("".join),
        st.sampled_from(["", "Bridge in Lüneburg closed", "Bridge in Görlitz closed", "大桥通车"]),
    ),
)
FIELDS = st.builds(
    Fields,
    letters=COUNTS,
    size=COUNTS,
    shingles=COUNTS,
    number_count=COUNTS,
    sentence_count=COUNTS,
    figures=st.sampled_from([0, 1, 2**64 - 1]),
    sketch=SKETCHES,
    sentences=st.one_of(sample(POOL, 30, distinct=True), sample(WIDE_POOL, MAX_SENTENCES, distinct=True)),
    terms=sample(st.integers(0, 12), 8, distinct=True),
    numbers=sample(st.integers(0, 90), MAX_NUMBERS, distinct=False),
    metadata=st.sampled_from([b"", b"S12345678"]),
    stream=STREAMS,
)


@st.composite
def evidence_pairs(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Two pieces of evidence of any kind: related, unrelated, empty, or cut."""
    one = draw(FIELDS)
    other = draw(FIELDS)
    for name in draw(st.sets(st.sampled_from(list(Fields.__annotations__)))):
        other = replace(other, **{name: getattr(one, name)})
    packed = [one.packed, other.packed]
    if draw(st.integers(0, 9)) == 0:
        place = draw(st.integers(0, 1))
        packed[place] = packed[place][: draw(st.integers(0, len(packed[place])))]
    return packed[0], packed[1]


COMMON = st.lists(st.one_of(POOL, WIDE_POOL), max_size=40).map(lambda of: sorted(set(of)))
DISTANCES = st.builds(Distance, words=st.one_of(st.none(), st.integers(0, 64)), body=st.none())


def is_of_a_page(page: Evidence) -> bool:
    """Whether the samples are as those of pages: ascending, sentences and terms distinct."""
    sentences, terms, numbers = list(page.sentence_values), list(page.terms), list(page.numbers)
    return [sentences, terms, numbers] == [sorted(set(sentences)), sorted(set(terms)), sorted(numbers)]
