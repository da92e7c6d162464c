"""Words of two pages by weight."""

from dedup_service.core.explain.channels import compare_features
from dedup_service.core.fingerprinter import Feature
from dedup_service.runtime.resources import build_fingerprinter
from tests.core.explain.pages import prepared


def feature(word: str, weight: float) -> Feature:
    """A word with this weight."""
    return Feature(word=word, weight=weight, count=1, idf=1.0, factors={})


def test_shared_and_alone_heaviest_first() -> None:
    """Shared words by the smaller weight, equals in alphabetical order, and no more than the limit."""
    ones = [feature("a", 9), feature("b", 5), feature("c", 5), feature("d", 1)]
    others = [feature("a", 1), feature("b", 4), feature("x", 2), feature("y", 3)]
    found = compare_features(ones, others, 2)
    assert [(both.one.word, both.weight) for both in found.shared] == [("b", 4), ("a", 1)]
    assert [at.word for at in found.one] == ["c", "d"]
    assert [at.word for at in found.other] == ["y", "x"]
    assert len(compare_features(ones, [], 3).one) == 3


def test_no_word_is_in_two_lists() -> None:
    """In real pages, words of both pages are in neither of the other lists."""
    ones, others = (build_fingerprinter().explain(prepared(1, change).page, limit=10**6) for change in (0.0, 0.4))
    found = compare_features(ones, others, 10**6)
    shared, one, other = ({at.word for at in side} for side in ([b.one for b in found.shared], found.one, found.other))
    assert shared | one == {at.word for at in ones}
    assert shared | other == {at.word for at in others}
    assert not shared & one
    assert not shared & other
    assert not one & other
