"""Encodings: any bytes under any declaration are text."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.text.encoding import decode_html, without_surrogates
from tests.fuzz.budget import within
from tests.fuzz.examples import fuzzed
from tests.fuzz.mutation import hostile, mutated

LABELS = st.sampled_from(
    [
        *("utf-8", "utf8", "utf-16", "utf-16le", "utf-32", "utf-7", "gbk", "gb2312", "gb18030", "big5", "shift_jis"),
        *("euc-jp", "euc-kr", "iso-2022-jp", "iso-2022-kr", "hz", "iso-8859-1", "windows-1252", "windows-1251"),
        *("koi8-r", "tis-620", "x-user-defined", "macintosh", "idna", "punycode", "unicode_escape", "hex", "base64"),
        *("zlib", "bz2", "rot13", "undefined", "mbcs", "oem", "charmap", "text/html", "../../etc", "x\0y", ""),
    ]
)
DECLARED = st.one_of(
    st.none(), LABELS, LABELS.map("text/html; charset={}".format), LABELS.map(' charset = "{}"'.format), st.text()
)
TEXTS = st.sampled_from(
    ["图书馆延长开放时间。" * 5, "Ученые нашли" * 9, "図書館は週末 ", "naïve café", "도서관", "a<p>b" * 9]
)
CODECS = ["utf-8", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr", "utf-16-le", "utf-16", "utf-32", "iso2022_jp"]
ENCODED = st.builds(lambda text, codec: text.encode(codec, "replace"), TEXTS, st.sampled_from([*CODECS, "cp1251"]))
METAS = LABELS.map('<meta charset="{}">'.format).map(str.encode)
PIECES = (
    *(b"\xff", b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b$B", b"\x1b(B", b"~{", b"\x81"),
    *(b"\xed\xa0\x80", b"\0"),
)
BODIES = st.one_of(
    st.binary(), mutated(ENCODED, PIECES), st.builds(bytes.__add__, METAS, mutated(ENCODED, PIECES)), hostile("html")
)


def check(body: bytes, declared: str | None = None) -> None:
    """What must hold for any body and declaration."""
    with within(body, declared):
        decoded = decode_html(body, declared)
    assert len(decoded.text) <= len(body), "a byte is at most one character"
    assert decode_html(body, declared) == decoded
    text = without_surrogates(decoded.text)
    assert without_surrogates(text) == text
    assert decode_html(b"\xef\xbb\xbf" + text.encode()).text == text


@fuzzed(40)
@given(
    body=BODIES.map(lambda body: body.encode("utf-8", "replace") if isinstance(body, str) else body), declared=DECLARED
)
def test_any_bytes_are_text_under_any_declaration(body: bytes, declared: str | None) -> None:
    """Nothing raises, no byte becomes two characters, and a byte order mark decides."""
    check(body, declared)
