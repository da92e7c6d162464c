"""Tests for the way from a page to its fingerprints."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import PageText, Preparer, Segmenter, distinct_ngrams, fold
from dedup_service.core.errors import InternalError
from dedup_service.core.features.simhash import hamming, simhash
from dedup_service.core.page import Page, PreparedPage
from dedup_service.runtime import resources
from dedup_service.runtime.jieba_dictionary import jieba_folder
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter

BODY = (
    "市交通局昨日公布，跨江大桥主体工程提前三周完工，将于下月初通车。大桥全长四千二百米，设双向六车道，"
    "两侧留有自行车道。总之，通车以后，从老城到新区的车程将由五十分钟缩短到二十分钟。沿线居民对此期待已久，"
    "附近三所学校也将调整校车路线。施工方表示，最后的路面铺装与照明调试正在进行，验收安排在本月二十五日。"
)
ENGLISH = (
    "The harbour authority opened the new grain terminal on Monday after four years of work. However, farmers "
    "along the river say that freight rates will not fall before the second berth is ready next autumn. The "
    "terminal can load nine ships a week and stores two hundred thousand tonnes of wheat and barley."
)


def page(text: str = BODY, title: str = "跨江大桥下月通车", **changes: object) -> Page:
    """A news page."""
    fields: dict[str, object] = {"url": "http://a.test/1", "canonical_url": "http://a.test/1", "id": "1"}
    return Page(title=title, text=text, **(fields | changes))  # type: ignore[arg-type]


def prepare(item: Page, **options: object) -> PreparedPage:
    """The page in the default space or another."""
    return build_fingerprinter(SpaceOptions(**options)).prepare(item)  # type: ignore[arg-type]


def body_distance(a: PreparedPage, b: PreparedPage) -> int:
    """Bits between the bodies."""
    assert a.fingerprint.body is not None
    assert b.fingerprint.body is not None
    return hamming(a.fingerprint.body, b.fingerprint.body)


def test_typography_and_script_do_not_move_a_fingerprint() -> None:
    """Traditional characters and full-width figures of the same text give the same fingerprint."""
    traditional = "市交通局昨日公佈，跨江大橋主體工程提前三週完工，將於下月初通車。"
    simplified = "市交通局昨日公布，跨江大桥主体工程提前三周完工，将于下月初通车。"
    assert prepare(page(traditional)).fingerprint.body == prepare(page(simplified)).fingerprint.body


TEXTS = st.text(alphabet=st.sampled_from("ab \n\0漢é́ﬁ가Ⅷ\r、1²½"), max_size=30)


LANGUAGES = (
    BODY,
    ENGLISH,
    "市交通局公佈，跨江大橋提前三週完工。",
    "橋が開通した。新しい駅も",
    "대교가 개통했다",
    "😀 x² ½",
    "",
    " ",
)


@given(title=TEXTS, text=TEXTS)
def test_title_and_body_are_folded_apart(title: str, text: str) -> None:
    """The end of the title and the beginning of the body never affect each other."""
    prepared, of_title = prepare(page(text, title)), build_fingerprinter().words(page("", title))
    assert (prepared.body_hash, prepared.text_hash) == PageText(title, text).exact_hashes
    assert set(of_title) == set(build_fingerprinter().words(page("", fold(title))))


SPACES = (
    SpaceOptions(unspaced="pairs"),
    SpaceOptions(unspaced="icu", bits=128),
    SpaceOptions(scheme="tf", factors=("tf=log", "hash=java", "marker=3", "marker_by=word"), unspaced="icu"),
    SpaceOptions(factors=("combine=sum", "with_title=off", "min_chars=3"), unspaced="pairs"),
)


@given(st.lists(TEXTS | st.sampled_from(LANGUAGES), max_size=3).map("".join), TEXTS, st.sampled_from(SPACES))
def test_both_channels_are_the_simhash_of_their_features(text: str, title: str, space: SpaceOptions) -> None:
    """The crate's fingerprints are those of the formulas: of weighted words, and of n-grams that weigh 1 each."""
    fingerprinter, item = build_fingerprinter(space), page(text, title)
    found, scheme, bits = fingerprinter.fingerprint(item), fingerprinter.space.scheme, space.bits
    assert found.words == scheme.fingerprint(text, lambda: fingerprinter._table(item), bits=bits)
    ngrams = memoryview(distinct_ngrams(PageText(title, text).letters, fingerprinter.space.shingle)).cast("Q").tolist()
    assert (found.body is None) == (not ngrams)
    assert (found.body or 0) % 2**64 == (simhash(ngrams, [1] * len(ngrams)) or 0)


@given(
    st.lists(
        st.builds(
            page,
            text=st.lists(st.sampled_from(LANGUAGES), max_size=3).map("\n".join) | TEXTS,
            title=st.sampled_from(("总之 however", *LANGUAGES)) | TEXTS,
            lang=st.sampled_from((None, "zh", "ja")),
            tags=st.sampled_from(((), ("桥", "b"))),
        ),
        max_size=6,
    ),
    st.sampled_from(("twinsieve", "wang2019", "zhang2020", "seed-java", "tf")),
)
def test_pages_are_prepared_together_as_alone(pages: list[Page], scheme: str) -> None:
    """Whatever pages are beside it, in any order of scripts, a page gets what it gets alone."""
    fingerprinter = build_fingerprinter(SpaceOptions(scheme=scheme))
    alone = [fingerprinter.prepare(each) for each in pages]
    assert fingerprinter.prepare_all(pages) == alone
    assert fingerprinter.prepare_all(pages * 20, threads=2) == alone * 20


def test_many_and_long_pages_are_prepared_in_parts() -> None:
    """However many pages there are, and however long one is, each has its fingerprint."""
    pages = [page(f"{BODY}第{number}次公布。" * (3000 if number == 7 else 1)) for number in range(300)]
    fingerprinter = build_fingerprinter(SpaceOptions())
    assert fingerprinter.prepare_all(pages) == [fingerprinter.prepare(each) for each in pages]


def test_the_headline_moves_words_and_never_body() -> None:
    """Another headline over the same text leaves the body channel and the body hash alone."""
    first, second = prepare(page()), prepare(page(title="车程缩短一半 居民期待已久"))
    assert first.fingerprint.body == second.fingerprint.body
    assert first.body_hash == second.body_hash
    assert first.text_hash != second.text_hash
    assert first.fingerprint.words != second.fingerprint.words


def test_an_edited_sentence_moves_the_body_a_little() -> None:
    """A changed phrase stays near, another article is far."""
    edited = prepare(page(BODY.replace("本月二十五日", "下月三日")))
    assert 0 < body_distance(prepare(page()), edited) <= 7
    assert body_distance(prepare(page()), prepare(page(ENGLISH))) > 16


def test_english_pages_have_both_channels() -> None:
    """A page in another script is fingerprinted by Unicode words."""
    fingerprint = prepare(page(ENGLISH, "New grain terminal opens")).fingerprint
    assert fingerprint.words is not None
    assert fingerprint.body is not None


def test_a_page_without_text_has_no_fingerprint_and_says_so() -> None:
    """There is nothing to judge: the page has no body and no hash, but a reason."""
    empty = prepare(page("  \n ", title=""))
    assert empty.fingerprint.words is None
    assert empty.fingerprint.body is None
    assert (empty.body_hash, empty.text_hash, empty.reason) == (None, None, "no text")


def test_repost_marks_are_not_part_of_the_same_text() -> None:
    """Markers around a text with exponents and vowel marks leave the hashes alone, as around any text."""
    for text in (BODY, "面积 10² 平方", "كَتَبَ الرسالة"):
        plain, reposted = prepare(page(text)), prepare(page(f"转发微博：//@晨读笔记：{text}[赞] [doge]"))
        assert (plain.body_hash, plain.text_hash) == (reposted.body_hash, reposted.text_hash)


@pytest.mark.parametrize(
    ("one", "other"), [("1.5%", "15%"), ("−12", "+12"), ("C++", "C#"), ("$500", "€500"), ("10²", "102"), ("كَتَبَ", "كُتِبَ")]
)
def test_pages_that_differ_in_a_sign_differ_in_both_hashes(one: str, other: str) -> None:
    """A percentage, a sign, a currency or a vowel makes another text, however alike the shingles are."""
    first, second = prepare(page(f"{BODY}共 {one}。")), prepare(page(f"{BODY}共 {other}。"))
    assert first.body_hash != second.body_hash
    assert first.text_hash != second.text_hash


def test_the_extractions_problem_is_the_reason() -> None:
    """The problem that extraction reports becomes the reason of the verdict."""
    assert prepare(page("", problem="page too large")).reason == "page too large"


def test_too_little_text_is_named_with_both_numbers() -> None:
    """A short page has fingerprints, but is not judged by them; the reason has the count and the minimum."""
    assert prepare(page("大桥通车了")).reason == "too little text: 5 letters, at least 64 to judge"


@pytest.mark.parametrize("line", ["a", "大桥通车 ", "12.50 kg 99 pieces; "])
def test_the_same_few_letters_again_and_again_are_not_judged(line: str) -> None:
    """A table that repeats one row has many letters, but no more content than the row."""
    reason = prepare(page(line * 500)).reason
    assert reason is not None
    assert reason.startswith("too little variety: ")
    assert reason.endswith(", at least 32 to judge")
    assert prepare(page(BODY * 20)).reason is None


def test_stop_words_and_punctuation_are_no_features() -> None:
    """The words of a page are its content words."""
    words = build_fingerprinter().words(page())
    assert {"大桥", "通车"} <= set(words)
    assert not {"的", "，", "将", "总之"} & set(words)


def test_words_beside_a_marker_weigh_more() -> None:
    """The sentence that begins with 总之 carries the marker factor, others do not."""
    features = {item.word: item for item in build_fingerprinter().explain(page(), limit=100)}
    assert features["车程"].factors["marker"] == 2.0
    assert features["照明"].factors["marker"] == 1.0
    assert features["大桥"].factors["title"] == 5.0


def test_an_english_marker_phrase_is_found() -> None:
    """Markers of several words work in other scripts."""
    text = ENGLISH + " In conclusion, dredging remains the bottleneck."
    features = {item.word: item for item in build_fingerprinter().explain(page(text), limit=100)}
    assert features["dredging"].factors["marker"] == 2.0
    assert features["barley"].factors["marker"] == 1.0


def test_seed_java_explains_its_own_words() -> None:
    """Its features are the words between white space as written, stop words and capitals included."""
    features = build_fingerprinter(SpaceOptions(scheme="seed-java")).explain(page("The cat sat on The mat"))
    assert (features[0].word, features[0].weight) == ("The", 2)
    assert len(features) == 5


def test_seed_java_is_the_seed_program() -> None:
    """The scheme reads the text as extracted and ignores the title."""
    item = page("the cat sat on the mat")
    assert prepare(item, scheme="seed-java").fingerprint.words == 18067315166123372031
    assert prepare(page(""), scheme="seed-java").fingerprint.words == 2**64 - 1


@pytest.mark.parametrize("scheme", ["twinsieve", "tf", "levels", "wang2019", "zhang2020", "seed-java"])
def test_every_scheme_has_its_own_space(scheme: str) -> None:
    """Space ids differ by scheme, and are safe in file names."""
    ids = {build_fingerprinter(SpaceOptions(scheme=name)).space_id for name in (scheme, "tf", "twinsieve")}
    assert len(ids) == len({scheme, "tf", "twinsieve"})
    assert all("/" not in name for name in ids)


def test_the_same_options_make_the_same_space() -> None:
    """A space id depends only on what makes fingerprints."""
    resources._built.cache_clear()
    first = build_fingerprinter().space_id
    resources._built.cache_clear()
    assert build_fingerprinter(SpaceOptions()).space_id == first


def test_128_bits_extend_64() -> None:
    """A wide fingerprint has both lanes in both channels."""
    wide = prepare(page(), bits=128).fingerprint
    assert wide.words is not None
    assert wide.words >> 64
    assert wide.body is not None
    assert wide.body >> 64
    assert wide.body & 2**64 - 1 == prepare(page()).fingerprint.body


def test_a_prepared_page_can_be_compared_by_value() -> None:
    """Preparing is a pure function of the page."""
    item = page(keywords=("大桥", "交通"))
    assert prepare(item) == prepare(dataclasses.replace(item))


def test_a_fault_of_the_icu_function_is_reported() -> None:
    """An exception, or words that are not those of the text, are faults of ours."""

    def fail(_: str) -> list[str]:
        raise ValueError("no dictionary")

    space = build_fingerprinter(SpaceOptions(unspaced="icu")).space
    for cut, message in ((fail, "no dictionary"), (lambda _: ["x"], "have 1 characters, and the text has")):
        preparer = Preparer(space, Segmenter(jieba_folder()), idf="a 1\n", stop_words=(), markers=(), icu=cut)
        with pytest.raises(InternalError, match=message):
            preparer.prepare([page("ขอบคุณ", "")])
