"""The cache: found again under the same key only, and never half."""

import pytest

from benchmarks.quality.numbers import figure, table
from benchmarks.quality.store import Store, modules_behind


def test_a_value_is_made_once_for_a_key(tmp_path):
    """Another key, which is other code or data, makes it anew."""
    store, made = Store(tmp_path / "cache"), []

    def make():
        made.append(1)
        return len(made)

    assert [store.get("v", ("a",), make), store.get("v", ("a",), make), store.get("v", ("b",), make)] == [1, 1, 2]
    assert store.has("v", ("a",))
    assert not store.has("v", ("c",))


def test_a_value_that_could_not_be_made_leaves_nothing(tmp_path):
    """A run that breaks off is repeated from there."""
    store = Store(tmp_path)

    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.get("v", ("a",), fail)
    assert not list(tmp_path.iterdir())


def test_figures_have_no_leading_zero_and_tables_are_markdown():
    """As the page writes them."""
    assert [figure(value) for value in (0.9871, 1.0, 0.0, float("nan"))] == [".987", "1.000", "0.000", "–"]
    assert table(["a", "b"], [[1, 2]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_what_prepares_pages_is_found_by_its_imports():
    """A change of a threshold makes no page anew, one of the evidence does."""
    names = {path.stem for path in modules_behind(["dedup_service.core.fingerprinter"])}
    assert {"fingerprinter", "packed", "sketch", "normalise", "weighting_schemes"} <= names
    assert not names & {"decision", "profiles", "rule"}
