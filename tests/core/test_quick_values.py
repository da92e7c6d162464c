"""Frozen values that are made quickly are the same as others."""

from dataclasses import FrozenInstanceError, asdict
from pickle import dumps, loads

import pytest

from dedup_service.core.verdict import Distance, Verdict, VerdictKind, new_distance, new_verdict


def test_a_quick_verdict_is_a_verdict() -> None:
    """It is equal to one made in the usual way, with all defaults, and prints, pickles and hashes alike."""
    quick = new_verdict(7, "a", "http://a.test/", VerdictKind.UNIQUE, "space", reason="contains b")
    usual = Verdict(
        sequence=7, id="a", url="http://a.test/", kind=VerdictKind.UNIQUE, space="space", reason="contains b"
    )
    assert type(quick) is Verdict
    assert quick == usual
    assert (hash(quick), repr(quick), asdict(quick)) == (hash(usual), repr(usual), asdict(usual))
    assert loads(dumps(quick)) == usual


def test_a_quick_value_is_frozen() -> None:
    """Nobody can change it."""
    distance = new_distance(3)
    assert distance == Distance(words=3)
    with pytest.raises(FrozenInstanceError):
        distance.words = 4  # type: ignore[misc]
