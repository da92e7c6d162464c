"""Tests for decoding: a declared encoding is accepted only if the bytes agree."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.text.encoding import ACCIDENTAL_BYTES, decode_html, html_as_utf8

ZH = "<html><head></head><body><p>综上所述，图书馆延长开放时间的决定受到读者欢迎。</p></body></html>"
TRADITIONAL = "<html><body><p>綜上所述，圖書館延長開放時間的決定受到讀者歡迎，詳情請見公告。</p></body></html>"
JA = "<html><body><p>図書館は来月から週末の開館時間を延長すると発表しました。これは読者の要望です。</p></body></html>"
KO = "<html><body><p>도서관은 다음 달부터 주말 개관 시간을 연장한다고 발표했습니다.</p></body></html>"
RU = "<html><body><p>Библиотека объявила, что со следующего месяца будет открыта по выходным дольше.</p></body></html>"
FR = "<html><body><p>La bibliothèque prolonge ses heures d’ouverture, “à la demande” des lecteurs.</p></body></html>"
LEGACY = [
    (ZH, "gb2312", "gb18030"),
    (ZH, "gbk", "gb18030"),
    (TRADITIONAL, "big5", "big5hkscs"),
    (JA, "shift_jis", "cp932"),
    (JA, "euc_jp", "euc_jp"),
    (KO, "euc-kr", "cp949"),
    (RU, "windows-1251", "cp1251"),
    (FR, "windows-1252", "cp1252"),
]


@pytest.mark.parametrize(("text", "label", "_read_as"), LEGACY)
def test_declared_by_header(text: str, label: str, _read_as: str) -> None:
    """An encoding in the Content-Type header is used."""
    assert decode_html(text.encode(label), f"text/html; charset={label}").text == text


@pytest.mark.parametrize(("text", "label", "read_as"), LEGACY)
def test_declared_by_meta(text: str, label: str, read_as: str) -> None:
    """An encoding in <meta charset> is used, as the superset that browsers use for it."""
    page = text.replace("<body>", f'<meta charset="{label}"><body>')
    decoded = decode_html(page.encode(label))
    assert decoded.text == page
    assert codecs.lookup(decoded.encoding) == codecs.lookup(read_as)


@pytest.mark.parametrize(("text", "label", "_read_as"), LEGACY)
def test_sniffed_if_nothing_is_declared(text: str, label: str, _read_as: str) -> None:
    """An undeclared encoding is recognised by its bytes."""
    assert decode_html(text.encode(label)).text == text


@pytest.mark.parametrize(("text", "label", "_read_as"), LEGACY)
def test_utf8_declaration_over_other_bytes(text: str, label: str, _read_as: str) -> None:
    """A page that declares UTF-8 but is not is read in its real encoding."""
    assert decode_html(text.encode(label), "text/html; charset=utf-8").text == text


@pytest.mark.parametrize("label", ["iso-8859-1", "gbk", "big5", "shift_jis", "windows-1251"])
def test_utf8_bytes_under_another_declaration(label: str) -> None:
    """A server's default charset does not spoil a UTF-8 page."""
    assert decode_html(ZH.encode(), label).text == ZH


def test_meta_goes_before_a_one_byte_header() -> None:
    """A <meta> that can be checked takes precedence over a header of ISO-8859-1, which fits any bytes."""
    page = ZH.replace("<head>", '<head><meta charset="gb2312">')
    assert decode_html(page.encode("gbk"), "text/html; charset=ISO-8859-1").text == page


def test_rare_characters_of_a_gb2312_page() -> None:
    """A page that declares GB2312 may use all of GB18030, as in browsers."""
    page = '<meta charset="gb2312"><p>镕基、喆、𠮷野家、€</p>'
    assert decode_html(page.encode("gb18030")).text == page


def test_hong_kong_characters_of_a_big5_page() -> None:
    """A page that declares Big5 may use the Hong Kong supplement."""
    page = '<meta charset="big5"><p>佢哋喺嗰度</p>'
    assert decode_html(page.encode("big5hkscs")).text == page


def test_one_broken_byte_keeps_the_declared_encoding() -> None:
    """A stray byte in a long page loses one character, not the page."""
    data = ZH.encode() * 20 + b"\xff" + ZH.encode() * 20
    decoded = decode_html(data, "utf-8")
    assert decoded.encoding == "utf-8"
    assert decoded.text.count("\N{REPLACEMENT CHARACTER}") == 1


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_mark(encoding: str) -> None:
    """A byte order mark decides the encoding and is not part of the text."""
    assert decode_html(ZH.encode(encoding), "gbk").text == ZH


def test_utf16_without_a_mark() -> None:
    """UTF-16 that is declared by the header alone is read as big-endian."""
    assert decode_html(ZH.encode("utf-16-be"), "utf-16").text == ZH


@pytest.mark.parametrize("label", ["", "hex", "rot13", "idna", "punycode", "utf-7", "no-such", "中文", "a\0b"])
def test_labels_that_name_no_encoding(label: str) -> None:
    """A label that is not an encoding of pages is ignored."""
    assert decode_html(ZH.encode("gbk"), label).text == ZH


@given(
    data=st.binary(max_size=300)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
    | st.builds(lambda text: text.encode("gb18030", "replace"), st.text(max_size=200)),
    before=st.sampled_from([b"", b"\xef\xbb\xbf", b"\xff\xfe", b"<meta charset=utf-16>", b"<meta charset=gbk>"]),
    declared=st.sampled_from([None, "gbk", "utf-8", "utf-16"]),
)
def test_a_page_as_utf8_is_its_text(data: bytes, before: bytes, declared: str | None) -> None:
    """Bytes that are passed on as they are have the text that decoding gives."""
    text = decode_html(before + data, declared).text
    assert html_as_utf8(before + data, declared) == text.encode("utf-8", "replace")


def test_utf8_is_not_encoded_again() -> None:
    """A page in UTF-8 is passed on without a copy."""
    page = ZH.encode()
    assert html_as_utf8(page, "gbk") is page


@pytest.mark.parametrize(("character", "few", "many"), [("é", 8, 9), ("图", 4, 6), ("\N{GRINNING FACE}", 4, 5)])
def test_accidental_bytes_are_counted_exactly(character: str, few: int, many: int) -> None:
    """Up to ACCIDENTAL_BYTES bytes that are not ASCII, a declaration that fits is believed rather than UTF-8."""
    size = len(character.encode())
    assert few * size <= ACCIDENTAL_BYTES < many * size
    assert decode_html(("a" * 100 + character * few).encode(), "gbk").encoding == "gb18030"
    assert decode_html(("a" * 100 + character * many).encode(), "gbk").encoding == "utf-8"
