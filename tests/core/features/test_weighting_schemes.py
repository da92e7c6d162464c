"""Tests for the weighting schemes, against their published formulas."""

import math
from dataclasses import replace
from functools import reduce
from operator import add, mul

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features import weighting_factors
from dedup_service.core.features.simhash import FIXED_POINT, fixed_point, simhash
from dedup_service.core.features.vocabulary import WORD
from dedup_service.core.features.weighting_schemes import FACTORS, SCHEMES, WeightedScheme, scheme_named
from dedup_service.core.features.words import WordTable


def table() -> WordTable:
    """Return a table of three words: a noun of the title, a marked verb, another word."""
    return WordTable(
        segments=["大桥", "通车", "来自五湖四海"],
        rows=np.array(
            [(0, 1, 4, 4, 2.0, True, False), (1, 2, 5, 1, 5.0, False, True), (2, 3, 6, 3, 3.0, False, False)], WORD
        ),
        tags=["n", "v", "x"],
    )


def weights(scheme: WeightedScheme) -> list[float]:
    """Return the weights of the words of `table`, as floats."""
    return (scheme.weigh(table()) / FIXED_POINT).tolist()


def test_tf_counts() -> None:
    """`tf` weighs a word by its occurrences."""
    assert weights(SCHEMES["tf"]) == [4.0, 1.0, 3.0]


def test_wang2019_multiplies_tf_idf_and_length() -> None:
    """The weight is w(x) = tf · idf · (1 + len(x)), with len a Gaussian at 4.51 with σ 2.207."""
    expected = [
        n / 8 * idf * (1 + math.exp(-((length - 4.51) ** 2) / (2 * 2.207**2)))
        for n, idf, length in ((4, 2.0, 2), (1, 5.0, 2), (3, 3.0, 6))
    ]
    assert weights(SCHEMES["wang2019"]) == pytest.approx(expected, abs=1e-5)


def test_the_other_reading_of_the_length_curve_is_a_switch() -> None:
    """2.207 may be the fitting tool's c: exp(−((x − 4.51)/2.207)²)."""
    narrow = weighting_factors.gauss_length(table(), as_sigma=False)
    assert narrow[0] == pytest.approx(1 + math.exp(-(((2 - 4.51) / 2.207) ** 2)))


def test_zhang2020_multiplies_all_factors() -> None:
    """The weight is tf · idf × part of speech × length × marker × title."""
    expected = [4 / 8 * 2.0 * 3 * 1 * 1 * 5, 1 / 8 * 5.0 * 2 * 1 * 5 * 1, 3 / 8 * 3.0 * 1 * 2 * 1 * 1]
    assert weights(SCHEMES["zhang2020"]) == pytest.approx(expected, abs=1e-5)


def test_zhang2020_can_add_its_factors() -> None:
    """The second published form is tf · idf × (pos + length + marker + title)."""
    summed = replace(SCHEMES["zhang2020"], combine="sum")
    expected = [4 / 8 * 2.0 * (3 + 1 + 1 + 5), 1 / 8 * 5.0 * (2 + 1 + 5 + 1), 3 / 8 * 3.0 * (1 + 2 + 1 + 1)]
    assert weights(summed) == pytest.approx(expected, abs=1e-5)


def test_words_of_one_length_weigh_the_same() -> None:
    """The length factor is 1 for all words if no word is longer than another."""
    short = replace(table(), segments=["ab", "cd", "ef"])
    assert weighting_factors.minmax_length(short).tolist() == [1.0, 1.0, 1.0]


def test_levels_are_quintiles_of_tf_idf() -> None:
    """Ten rising values fill five levels evenly, and equal values share one."""
    assert weighting_factors.levels(np.arange(10.0)).tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert weighting_factors.levels(np.array([7.0, 7.0, 7.0])).tolist() == [1, 1, 1]


def test_the_default_boosts_title_and_marker() -> None:
    """(1 + ln n) · idf, five times in the title, twice in a marked sentence."""
    expected = [(1 + math.log(4)) * 2.0 * 5, 5.0 * 2, (1 + math.log(3)) * 3.0]
    assert weights(SCHEMES["twinsieve"]) == pytest.approx(expected, abs=1e-5)


@given(
    st.lists(st.tuples(st.integers(1, 5000), st.floats(0, 20), st.booleans(), st.booleans()), min_size=1, max_size=20),
    st.sampled_from([1.0, 2.0, 5.0, 7.3]),
    st.sampled_from([1.0, 2.0, 3.1]),
    st.booleans(),
    st.sampled_from(["product", "sum"]),
)
def test_one_loop_weighs_as_the_factors_do(
    words: list[tuple[int, float, bool, bool]], title: float, marker: float, idf: bool, combine: str
) -> None:
    """The loop for (1 + ln n), idf, title and marker gives exactly the weights that the factors give."""
    page = replace(table(), rows=np.array([(0, 0, 0, *word) for word in words], WORD))
    scheme = WeightedScheme(name="one", tf="log", idf=idf, title=title, marker=marker, combine=combine)
    expected = weighting_factors.term_frequency(page, "log") * (page.idf if idf else 1.0)
    if boosts := [boost for _, boost in scheme.boosts(page)]:
        expected = expected * reduce(mul if combine == "product" else add, boosts)
    assert scheme.weigh(page).tolist() == fixed_point(expected).tolist()


@pytest.mark.parametrize("factor", FACTORS)
def test_every_factor_has_a_switch(factor: str) -> None:
    """Each factor can be switched off, which changes the weights."""
    assert weights(SCHEMES["zhang2020"].without([factor])) != weights(SCHEMES["zhang2020"])


def test_unknown_names_are_refused() -> None:
    """Both errors name the choices."""
    with pytest.raises(ConfigurationError, match="wang2019"):
        scheme_named("wang2020")
    with pytest.raises(ConfigurationError, match="idf, title, marker, pos, length"):
        scheme_named("tf", without=["colour"])


def test_every_field_can_be_set_by_name() -> None:
    """What the published schemes leave open is set as `name=value`."""
    scheme = scheme_named(
        "zhang2020", settings=["combine=sum", "marker_by=word", "length=gauss-c", "title=3", "idf=off"]
    )
    assert (scheme.combine, scheme.marker_by, scheme.length) == ("sum", "word", "gauss-c")
    assert (scheme.title, scheme.idf) == (3.0, False)
    assert scheme_named("twinsieve", settings=["hash=java", "pos=on", "length=off"]).hash == "java"


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("colour=red", "a scheme has tf, idf"),
        ("combine=max", "one of product, sum, got 'max'"),
        ("title=0", "from 1 to 1000, got '0'"),
        ("title", "from 1 to 1000, got ''"),
        ("title=nan", "from 1 to 1000"),
    ],
)
def test_an_invalid_setting_is_refused(setting: str, says: str) -> None:
    """The error names the field, its choices and the value."""
    with pytest.raises(ConfigurationError, match=says):
        scheme_named("twinsieve", settings=[setting])


def test_the_seed_program_has_nothing_to_set() -> None:
    """seed-java reproduces a program, so nothing of it can be changed."""
    with pytest.raises(ConfigurationError, match="has no 'title=2' to change"):
        scheme_named("seed-java", settings=["title=2"])


@pytest.mark.parametrize("name", [name for name in SCHEMES if name != "seed-java"])
@pytest.mark.parametrize("bits", [64, 128])
def test_the_fingerprint_is_the_simhash_of_the_weights(name: str, bits: int) -> None:
    """Each scheme gives the fingerprint of its weights, whether a compiled loop makes both at once or not."""
    scheme = SCHEMES[name]
    assert isinstance(scheme, WeightedScheme)
    hashes = [low | high << 64 for low, high in ((1, 4), (2, 5), (3, 6))]
    expected = simhash([value % (1 << bits) for value in hashes], scheme.weigh(table()), bits=bits)
    assert scheme.fingerprint("", table, bits=bits) == expected
