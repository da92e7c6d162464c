"""The cache: values are found under the same key only, and written completely or not at all."""

import pytest

from benchmarks.quality.numbers import figure, table
from benchmarks.quality.parts import COMMON, PARTS
from benchmarks.quality.store import Store, digest_of_baselines, digest_of_modules, modules_behind


def test_a_value_is_computed_once_for_a_key(tmp_path):
    """Another key, that is, other code or data, computes it again."""
    store, calls = Store(tmp_path / "cache"), []

    def make():
        calls.append(1)
        return len(calls)

    assert [store.get("v", ("a",), make), store.get("v", ("a",), make), store.get("v", ("b",), make)] == [1, 1, 2]
    assert store.has("v", ("a",))
    assert not store.has("v", ("c",))


def test_an_interrupted_computation_stores_nothing(tmp_path):
    """The next run computes the value again."""
    store = Store(tmp_path)

    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.get("v", ("a",), fail)
    assert not list(tmp_path.iterdir())


def test_figures_have_no_leading_zero_and_tables_are_markdown():
    """The page shows `.987`, and `–` for nan."""
    assert [figure(value) for value in (0.9871, 1.0, 0.0, float("nan"))] == [".987", "1.000", "0.000", "–"]
    assert table(["a", "b"], [[1, 2]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_digests_name_existing_modules():
    """A module that was moved would silently drop out of the keys."""
    digest_of_baselines()
    for part in PARTS.values():
        digest_of_modules((*COMMON, *part.modules))
    with pytest.raises(FileNotFoundError):
        digest_of_modules(["no_such_module"])


def test_modules_that_prepare_pages_are_found_by_their_imports():
    """A changed threshold does not invalidate prepared pages; changed evidence does."""
    names = {path.stem for path in modules_behind(["dedup_service.core.fingerprinter"])}
    assert {"fingerprinter", "packed", "sketch", "normalise", "weighting_schemes"} <= names
    assert not names & {"decision", "profiles", "rule"}
