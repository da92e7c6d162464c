"""Tests for the weighting schemes, against their published formulas."""

import math
from dataclasses import dataclass, replace

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features import weighting_factors
from dedup_service.core.features.hashing import xxh3
from dedup_service.core.features.simhash import FIXED_POINT, simhash
from dedup_service.core.features.weighting_schemes import FACTORS, SCHEMES, WeightedScheme, scheme_named
from dedup_service.core.features.words import WordTable


@dataclass
class CountedWord:
    """A word as the crate counts it."""

    word: str
    count: int
    idf: float
    in_title: bool = False
    is_marked: bool = False
    is_chinese: bool = True


def table(*words: str) -> WordTable:
    """Return a table of three words, by default a noun of the title, a marked verb, another word."""
    one, two, three = words or ("大桥", "通车", "来自五湖四海")
    counted = [
        CountedWord(one, 4, 2.0, in_title=True),
        CountedWord(two, 1, 5.0, is_marked=True),
        CountedWord(three, 3, 3.0),
    ]
    return WordTable(counted, ["n", "v", "x"])  # type: ignore[arg-type]


def weights(scheme: WeightedScheme) -> list[float]:
    """Return the weights of the words of `table`, as floats."""
    return [weight / FIXED_POINT for weight in scheme.weigh(table())]


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
    assert weighting_factors.minmax_length(table("ab", "cd", "ef")) == [1.0, 1.0, 1.0]


def test_levels_are_quintiles_of_tf_idf() -> None:
    """Ten rising values fill five levels evenly, and equal values share one."""
    assert weighting_factors.levels([float(value) for value in range(10)]) == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert weighting_factors.levels([7.0, 7.0, 7.0]) == [1, 1, 1]


def test_the_default_boosts_title_and_marker() -> None:
    """(1 + ln n) · idf, five times in the title, twice in a marked sentence."""
    expected = [(1 + math.log(4)) * 2.0 * 5, 5.0 * 2, (1 + math.log(3)) * 3.0]
    assert weights(SCHEMES["twinsieve"]) == pytest.approx(expected, abs=1e-5)


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
    """Each scheme gives the fingerprint of its weights."""
    scheme = SCHEMES[name]
    assert isinstance(scheme, WeightedScheme)
    hashes = [xxh3(word.word, bits) for word in table().words]
    assert scheme.fingerprint("", table, bits=bits) == simhash(hashes, scheme.weigh(table()), bits=bits)
