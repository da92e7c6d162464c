"""Where a text is a host's own."""

import numpy as np
import numpy.typing as npt
from hypothesis import example, given
from hypothesis import strategies as st

from dedup_service.core.evidence.sentences import ENDS, sentence_values
from dedup_service.core.explain.host_sentences import host_spans, sentence_places
from dedup_service.core.text.normalise import fold

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


def values_of(text: str) -> npt.NDArray[np.uint32]:
    """The values of a text's sentences, as the evidence has them."""
    return sentence_values(np.frombuffer(fold(text).encode("utf-32-le", "surrogatepass"), np.uint32), ENDS)


@given(TEXT)
@example("Straße und Fluß: ﬁne. 大桥今天通车了！臺北電臺報導")
def test_each_sentence_is_at_its_place(text: str) -> None:
    """The sentences are those of the evidence, in order, and each is in the text at its place."""
    values, places = sentence_places(text)
    assert set(values.tolist()) == set(values_of(text).tolist())
    assert np.all(np.diff(places, axis=0) >= 0)
    for value, (start, stop) in zip(values.tolist(), places.tolist(), strict=True):
        assert value in values_of(text[start:stop])
        assert "\n" not in text[start:stop]


def test_common_sentences_are_marked_with_their_punctuation() -> None:
    """Width, case and script make no difference, and neighbours become one place."""
    common = {*values_of("cookies are used here. 版权所有翻印必究").tolist()}
    text = "Ｃｏｏｋｉｅｓ are used HERE. 版權所有翻印必究！ 大桥今天通车了。\nCookies are used here"
    spans = host_spans(text, lambda values: np.isin(values, list(common)))
    assert [text[start:stop] for start, stop in spans] == [
        "Ｃｏｏｋｉｅｓ are used HERE. 版權所有翻印必究！ ",
        "Cookies are used here",
    ]


def test_a_text_without_common_sentences_has_no_place() -> None:
    """An empty text has none, either."""
    assert host_spans("", lambda values: values > 0) == ()
    assert host_spans("short", lambda values: values > 0) == ()
    assert host_spans("大桥今天通车了。", lambda values: values < 0) == ()
