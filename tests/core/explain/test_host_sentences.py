"""Where a text is a host's own."""

from hypothesis import example, given
from hypothesis import strategies as st

from dedup_service._native import fold, sentences_in_order
from dedup_service.core.explain.host_sentences import host_spans, sentence_places

TEXT = st.lists(
    st.sampled_from(
        [
            "大桥今天通车了",
            "臺北電臺報導",
            "Terms of use. ",
            "ＡＢＣ公司",
            "ﬁnd ",
            "。",
            "！",
            "\n",
            " ",
            "é",
            "e\u0301",
        ]
    ),
    max_size=25,
).map("".join) | st.text(max_size=60)


def values_of(text: str) -> set[int]:
    """The values of a text's sentences, as the evidence has them."""
    return {value for value, *_ in sentences_in_order(fold(text))[0]}


@given(TEXT)
@example("Straße und Fluß: ﬁne. 大桥今天通车了！臺北電臺報導")
def test_each_sentence_is_at_its_place(text: str) -> None:
    """The sentences are those of the evidence, in order, and each is in the text at its place."""
    found = sentence_places(text)
    assert {value for value, *_ in found} == values_of(text)
    assert [start for _, start, _ in found] == sorted(start for _, start, _ in found)
    assert [stop for *_, stop in found] == sorted(stop for *_, stop in found)
    for value, start, stop in found:
        assert value in values_of(text[start:stop])
        assert "\n" not in text[start:stop]


def test_common_sentences_are_marked_with_their_punctuation() -> None:
    """Width, case and script make no difference, and neighbours become one place."""
    common = values_of("cookies are used here. 版权所有翻印必究")
    text = "Ｃｏｏｋｉｅｓ are used HERE. 版權所有翻印必究！ 大桥今天通车了。\nCookies are used here"
    spans = host_spans(text, lambda values: [value in common for value in values])
    assert [text[start:stop] for start, stop in spans] == [
        "Ｃｏｏｋｉｅｓ are used HERE. 版權所有翻印必究！ ",
        "Cookies are used here",
    ]


def test_a_text_without_common_sentences_has_no_place() -> None:
    """An empty text has none, either."""
    assert host_spans("", lambda values: [True] * len(values)) == ()
    assert host_spans("short", lambda values: [True] * len(values)) == ()
    assert host_spans("大桥今天通车了。", lambda values: [False] * len(values)) == ()
