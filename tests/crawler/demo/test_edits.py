"""The edits of the demo's stories."""

import pytest
from twinsieve_crawler.demo.articles import load_articles
from twinsieve_crawler.demo.edits import EDITS, apply_edits

STORIES = load_articles()


@pytest.mark.parametrize("name", sorted(EDITS))
@pytest.mark.parametrize("story", ["zh-bridge", "en-ferry"])
def test_an_edit_leaves_most_of_a_story(name: str, story: str) -> None:
    """At least half of the paragraphs remain, and the original is unchanged."""
    before = STORIES[story]
    after = apply_edits(before, (name,))
    assert len(after.paragraphs) >= len(before.paragraphs) // 2
    assert before == load_articles()[story]


def test_a_tail_cut_removes_one_sentence() -> None:
    """The rest is unchanged."""
    before, after = STORIES["en-ferry"], apply_edits(STORIES["en-ferry"], ("tail cut",))
    assert before.paragraphs[-1].startswith(after.paragraphs[-1])
    assert before.paragraphs[:-1] == after.paragraphs[:-1]


def test_an_unknown_edit_is_an_error() -> None:
    """A typing mistake in the plan is not silently ignored."""
    with pytest.raises(KeyError):
        apply_edits(STORIES["en-ferry"], ("new headlin",))
