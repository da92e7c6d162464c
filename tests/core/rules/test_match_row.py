"""Rows of the rule table."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Combined, Similarity, jaccard
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.verdict import Distance
from tests.made_evidence import evidence_of

SHARE = st.floats(0.01, 1.0)
ROWS = st.builds(
    MatchRow,
    name=st.text(min_size=1).filter(str.strip),
    jaccard=SHARE,
    min_letters=st.integers(0, 500),
    containment=st.none() | SHARE,
    figures=st.none() | SHARE,
    length_ratio=st.none() | st.floats(1.0, 9.0),
    metadata=st.none() | SHARE,
    combined=st.none() | SHARE,
    words_distance=st.none() | st.integers(0, 64),
)


STORY = "The harbour authority opened the new grain terminal on Monday after 4 years of work. "


def similarity(one: str, other: str) -> Similarity:
    """The similarity of two texts."""
    return Similarity(evidence(one), evidence(other))


def evidence(text: str, *metadata: str) -> Evidence:
    """The evidence of a text with keywords."""
    return Evidence(evidence_of(text, metadata=metadata))


@given(
    st.none() | st.integers(0, 64),
    *[st.lists(st.sampled_from(["harbour", "grain", "trade", "ports"]), unique=True)] * 2,
)
def test_wang_and_wangs_rule_is_a_row(words: int | None, ours: list[str], theirs: list[str]) -> None:
    """The bound of .25 holds exactly if the separate rule does, within the radius that it can reach."""
    alike = Similarity(evidence(STORY, *ours), evidence(STORY, *theirs), Distance(words=words))
    row = MatchRow(name="a", jaccard=0.01, combined=0.25, words_distance=7)
    combined = 0 if words is None else Combined().similarity(words, jaccard(alike.one.metadata, alike.other.metadata))
    assert row.holds(alike) == (words is not None and words <= 7 and combined >= Combined().threshold)


def test_metadata_and_distances_are_bounds() -> None:
    """Shared keywords have a lower bound, differing bits an upper one; absent values do not satisfy a bound."""
    near, far, unknown = Distance(words=3, body=9), Distance(words=4, body=10), Distance()
    row = MatchRow(name="a", jaccard=0.9, metadata=0.5, words_distance=3, body_distance=9)
    one, half, none = evidence(STORY, "grain"), evidence(STORY, "grain", "trade"), evidence(STORY)
    assert row.holds(Similarity(one, half, near))
    assert not row.holds(Similarity(one, none, near))
    assert not row.holds(Similarity(one, half, far))
    assert not row.holds(Similarity(one, half, unknown))


@given(ROWS)
def test_a_row_survives_the_log(row: MatchRow) -> None:
    """What `to_dict` writes, `from_dict` reads back."""
    assert MatchRow.from_dict(row.to_dict()) == row


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "a"}, "needs a jaccard"),
        ({"jaccard": 0.5}, "needs a name"),
        ({"name": " ", "jaccard": 0.5}, "needs a name"),
        ({"name": "a", "jaccard": 0.0}, "above 0"),
        ({"name": "a", "jaccard": 1.5}, "from 0 to 1"),
        ({"name": "a", "jaccard": 0.5, "tilte": 0.5}, "'tilte'"),
        ({"name": "a", "jaccard": 0.5, "title": "high"}, "must be a number"),
        ({"name": "a", "jaccard": 0.5, "length_ratio": -1}, "below 0"),
        ({"name": "a", "jaccard": 0.5, "length_ratio": math.nan}, "no number"),
        ({"name": "a", "jaccard": 0.5, "min_letters": math.nan}, "no number"),
        ({"name": "a", "jaccard": 0.5, "figures": 2}, "from 0 to 1"),
    ],
)
def test_an_invalid_row_is_refused(values: dict[str, object], message: str) -> None:
    """The message names the bound and its range."""
    with pytest.raises(ConfigurationError, match=message):
        MatchRow.from_dict(values)


def test_every_bound_must_hold() -> None:
    """One bound that does not hold rejects a pair."""
    text = "The harbour authority opened the new grain terminal on Monday after 4 years of work. "
    alike = similarity(text * 2 + "It cost 31 million. ", text)
    assert MatchRow(name="a", jaccard=0.5).holds(alike)
    for bound in (
        {"jaccard": 0.99},
        {"jaccard": 0.5, "min_letters": 5000},
        {"jaccard": 0.5, "length_ratio": 1.1},
        {"jaccard": 0.5, "title": 0.1},
        {"jaccard": 0.5, "figures": 0.5, "title": 1.0},
    ):
        assert not MatchRow(name="a", **bound).holds(alike)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("other", "holding"),
    [
        (STORY, {"same figures", "no figure changed"}),
        (STORY + "It has 12 berths. ", {"no figure changed"}),
        (STORY.replace("4 years", "5 years"), set()),
        (STORY.replace("4 years", "4 months"), set()),
        (STORY.replace("4 years", "years"), {"no figure changed"}),
    ],
)
def test_figures_are_bounds(other: str, holding: set[str]) -> None:
    """`figures` 1 asks for the same ones, 0.5 for none changed."""
    rows = [
        MatchRow(name="same figures", jaccard=0.1, figures=1.0),
        MatchRow(name="no figure changed", jaccard=0.1, figures=0.5),
    ]
    assert {row.name for row in rows if row.holds(similarity(STORY, other))} == holding
