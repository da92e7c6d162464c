"""What the demo's editors do to a story."""

import pytest

from crawler.demo.articles import load_articles
from crawler.demo.edits import EDITS, apply_edits

STORIES = load_articles()


@pytest.mark.parametrize("name", sorted(EDITS))
@pytest.mark.parametrize("story", ["zh-bridge", "en-ferry"])
def test_an_edit_leaves_most_of_a_story(name: str, story: str) -> None:
    """No edit empties a story, and none touches the original."""
    before = STORIES[story]
    after = apply_edits(before, (name,))
    assert len(after.paragraphs) >= len(before.paragraphs) // 2
    assert before == load_articles()[story]


def test_a_tail_cut_loses_one_sentence() -> None:
    """The rest stays as it was."""
    before, after = STORIES["en-ferry"], apply_edits(STORIES["en-ferry"], ("tail cut",))
    assert before.paragraphs[-1].startswith(after.paragraphs[-1])
    assert before.paragraphs[:-1] == after.paragraphs[:-1]


def test_an_edit_that_does_not_exist_is_an_error() -> None:
    """A typing mistake in the plan does not pass for no edit."""
    with pytest.raises(KeyError):
        apply_edits(STORIES["en-ferry"], ("new headlin",))
