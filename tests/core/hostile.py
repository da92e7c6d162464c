"""Hostile input by name: strings that a stranger may repeat until something takes quadratic time or memory.

Each `Unit` makes input of about any size. The growth test measures each at n and at 4n; a fuzz test may join
several. New findings are added here, with the name of what they attack.

Kinds: "html" is the body of a page (str, or bytes in some encoding), "text" the main text of a page, "url" an
address or a rel=canonical link, "json" a JSON-LD block.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unit:
    """A kind of hostile input. make: returns some `size` characters of it, or bytes."""

    name: str
    kind: str
    make: Callable[[int], str | bytes]


def repeated(unit: str, before: str = "", after: str = "") -> Callable[[int], str]:
    """Return a maker of `unit`, again and again."""
    return lambda size: before + unit * max(1, (size - len(before) - len(after)) // len(unit)) + after


def numbered(unit: str, before: str = "", after: str = "") -> Callable[[int], str]:
    """Return a maker of `unit` with a number in place of each `#`, so that all are distinct."""

    def make(size: int) -> str:
        count = max(1, size // (len(unit) + 4 * unit.count("#")))
        return before + "".join(unit.replace("#", f"{number:05}") for number in range(count)) + after

    return make


def inside(opening: str, closing: str, filler: str, depth: int) -> Callable[[int], str]:
    """Return a maker of `filler`, again and again, inside `depth` nested elements."""
    return lambda size: opening * depth + filler * max(1, size // len(filler)) + closing * depth


def mirrored(opening: str, closing: str, middle: str = "x") -> Callable[[int], str]:
    """Return a maker of elements nested as deep as the size allows."""

    def make(size: int) -> str:
        depth = max(1, size // (len(opening) + len(closing)))
        return opening * depth + middle + closing * depth

    return make


def encoded(make: Callable[[int], str], encoding: str, before: bytes = b"") -> Callable[[int], bytes]:
    """Return a maker of the same as bytes."""
    return lambda size: before + make(size).encode(encoding, "replace")


def raw(unit: bytes, before: bytes = b"") -> Callable[[int], bytes]:
    """Return a maker of bytes, again and again."""
    return lambda size: before + unit * max(1, size // len(unit))


def spread(text: str, step: int) -> Callable[[int], str]:
    """Return a maker of code points from those of `text`, `step` apart, so that hardly any word repeats."""
    first = ord(text)
    return lambda size: "".join(chr(first + (step * i * i + i) % 20_000) for i in range(size))


SENTENCE = "The harbour council approved a plan on Tuesday to rebuild the old pier before winter. "
ARTICLE = f"<html><head><title>Pier</title></head><body><p>{SENTENCE * 3}</p>"

_BLOCKS = {
    "empty elements": "<div></div>word",
    "empty elements and sentences": f"<div></div>{SENTENCE}",
    "empty inline": "<b></b>word",
    "times without a date": '<time datetime="2024-03-" pubdate>word</time>',
    "equal times": '<time datetime="2024-03-05">word</time>',
    "stated dates": '<meta name="date" content="Tue Mar 05 soon">word',
    "inline formatting": "<b>bold</b> and <i>italic</i> ",
    "nested inline": "<b><i><u><em><strong>x</strong></em></u></i></b>y",
    "misnested inline": "<b><i>x</b>y</i>",
    "unclosed inline": "<b>x",
    "unclosed font": "<font size=1>x",
    "unclosed blocks": "<div>x",
    "unclosed paragraphs": "<p>x",
    "unclosed items": "<ul><li>x",
    "unclosed tables": "<table><tr><td>x",
    "unclosed links": "<a href=/>x",
    "unclosed forms": "<form>x",
    "stray end tags": "</div></p></b>x",
    "stray end paragraphs": "</p>",
    "line breaks": "word<br>",
    "rules": "word<hr>",
    "images": "word<img src=a.jpg>",
    "inputs": "word<input>",
    "scripts": "<script>x</script>word",
    "nested scripts": "<nav><svg></svg></nav>word",
    "styles": "<style>x</style>word",
    "selects": "<select><option>x</select>word",
    "buttons": "<button>x</button>word",
    "forms": "<form>x</form>word",
    "frames": "<iframe></iframe>word",
    "objects": "<object><param></object>word",
    "videos": "<video></video>word",
    "figures": "<figure><table></table></figure>word",
    "layout tables": "<table role=none><tr><td>x</table>",
    "tables": "<table><tr><td>cell</td><td>cell</td></tr></table>",
    "lists": "<ul><li>item</li><li>item</li></ul>",
    "definitions": "<dl><dt>x<dd>y</dl>",
    "quotations": "<blockquote>x</blockquote>word",
    "code": "<pre><code>x()</code></pre>word",
    "formulas": "<math alttext=x><mi>x</mi></math>word",
    "headings": "<h1>x</h1><h2>y</h2>",
    "paragraphs": f"<p>{SENTENCE}</p>",
    "paragraphs of a word": "<p>word</p>",
    "paragraphs in divisions": f"<div><p>{SENTENCE}</p></div>",
    "divisions": "<div>word</div>",
    "articles": "<article>word</article>",
    "link lists": "<ul><li><a href=/a>x</a><li><a href=/b>y</a></ul>word",
    "links": "<a href=/a>x</a> word ",
    "cards": "<h3>Comments</h3><div><a href=/a>x</a><p>word</p></div><div><a href=/b>y</a><p>word</p></div>",
    "labels in cards": "<li><a href=/a>x</a><p>Comments</p>",
    "labels inside one another": "<div>Comments<div><a href=/a>x</a>word",
    "links in paragraphs": "<p><a href=/a>a long name of another page</a></p>",
    "tag links": "<a rel=tag href=/a>x</a>",
    "comments": "word<!-- x -->",
    "unclosed comments": "<!-- x ",
    "processing instructions": "word<?x?>",
    "CDATA": "word<![CDATA[x]]>",
    "doctypes": "<!DOCTYPE html>x",
    "entities": "&amp;&lt;&#65;&nbsp;",
    "unknown entities": "&x",
    "escaped entities": "&amp;amp;",
    "control references": "&#0;&#1;&#xfffe;",
    "long control references": "&#00000000000000000001x",
    "ampersands": "&",
    "angles": "<",
    "closing angles": ">",
    "broken tags": "<a b='",
    "quotes": "<p x=\"y' ",
    "metas": "<meta name=keywords content=x>",
    "refresh": '<meta http-equiv=refresh content="0;url=/x">',
    "charsets": "<meta charset=gbk>",
    "canonical links": "<link rel=canonical href=/x>",
    "bases": "<base href=/x>",
    "heads": "<head><title>x</title></head>",
    "bodies": "<body class=x>y",
    "documents": "<html><body><p>x</p></body></html>",
    "framesets": "<frameset><frame>",
    "templates": "<template><p>x</template>",
    "custom elements": "<x-a>x</x-a>",
    "namespaces": "<a:b>x</a:b>",
    "plain text element": "<plaintext>x",
    "ruby": "<ruby>x<rt>y</ruby>",
    "data addresses": '<img src="data:image/png;base64,' + "A" * 400 + '">x',
    "source sets": '<img srcset="' + "/a.jpg 1x, " * 40 + '">x',
    "words and new lines": "word\n",
    "hidden": "<div style='display:none'>x</div>word",
    "comment blocks": "<div class=comments>x</div>word",
    "footers": "<footer>x</footer>word",
    "sidebars": "<div class=sidebar>x</div>word",
    "share buttons": "<div class=share>x</div>word",
    "spans in paragraphs": "<p>x <span>y</span> z</p>",
    "adjacent text": "<div>word</div>word<span></span>",
    "keyboard": "<kbd>x</kbd>word",
    "deletions": "<del>x</del>word",
    "subscripts": "x<sub>2</sub>",
    "formulas in text": " \\[x \\(y",
    "code in text": "`x ``y",
    "brackets in text": "[x](y",
    "images with words": "<p>word<img src='aaaaaaaa.jpg aaaaaaaa'></p>",
    "long sentences and videos": f"{SENTENCE * 10}<video>x</video>",
    "long sentences and footers": f"{SENTENCE * 10}<footer>x</footer>",
    "long sentences and shares": f"<p class=share>x</p>{SENTENCE * 10}",
    "long sentences and links": f"{SENTENCE * 10}<a href=/x>yy</a>",
    "details": "<details><summary>x</summary>y</details>",
}

_NESTED = {
    "nested divisions": ("<div>", "</div>"),
    "nested tag links": ("<div><a rel=tag href=/>", "</a></div>"),
    "nested plain tag links": ("<a rel=tag>", "</a>"),
    "nested lists": ("<ul><li>", "</li></ul>"),
    "nested tables": ("<table><tr><td>", "</td></tr></table>"),
    "nested quotations": ("<blockquote>", "</blockquote>"),
    "nested forms": ("<form>", "</form>"),
    "nested headings": ("<div><h1>", "</h1></div>"),
    "nested custom": ("<x-a>", "</x-a>"),
    "nested links": ("<div><a href=/x>", "</a></div>"),
    "nested inline deep": ("<b>", "</b>"),
    "nested sections": ("<section><article>", "</article></section>"),
    "nested code": ("<pre><code>", "</code></pre>"),
    "nested spans": ("<span><p>", "</p></span>"),
    "nested titles": ("<title>", "</title>"),
    "nested details": ("<details>", "</details>"),
}

_ATTRIBUTES = {
    "attributes": numbered(" a#=1", "<p", f">{SENTENCE * 3}</p>"),
    "attributes without values": numbered(" a#", "<p", f">{SENTENCE * 3}</p>"),
    "equal attributes": repeated(" a=1", "<p", f">{SENTENCE * 3}</p>"),
    "attributes by slashes": numbered("/a#", "<p", f">{SENTENCE * 3}</p>"),
    "attributes in quotes": numbered(" a#='>'", "<p", f">{SENTENCE * 3}</p>"),
    "attributes of an end tag": numbered(" a#=1", f"<p>{SENTENCE * 3}</p", ">"),
    "attributes of many": numbered("<p a#=1 b=1 c=1>x"),
    "attributes of html": numbered("<html a#=1>", ARTICLE),
    "attributes of body": numbered("<body a#=1>", ARTICLE),
    "long attribute": repeated("a", "<p x='", f"'>{SENTENCE * 3}</p>"),
    "long tag name": repeated("a", "<p", f">{SENTENCE * 3}</p>"),
    "long class": repeated("a b-c ", "<p class='", f"'>{SENTENCE * 3}</p>"),
    "long id": repeated("comment", "<p id='", f"'>{SENTENCE * 3}</p>"),
    "long style": repeated("color:red;", "<p style='", f"'>{SENTENCE * 3}</p>"),
    "long data address": repeated("QUJD", "<p>x<img src='data:image/png;base64,", "'></p>"),
    "long source set": repeated("/a.jpg 1x, ", "<p>x<img srcset='", "'></p>"),
    "long language": repeated("-abcd", "<html lang='en", f"'><p>{SENTENCE * 3}"),
    "long title": repeated("a - b_c | ", "<title>", f"</title><p>{SENTENCE * 3}"),
    "title of dashes": repeated("-", "<title>a", f"</title><p>{SENTENCE * 3}"),
    "title of sites": repeated(" - news", "<title>a", f"</title><p>{SENTENCE * 3}"),
    "long site name": repeated("新闻 ", "<title>a - b</title><meta property=og:site_name content='", "'><p>x"),
    "long keywords": numbered("k#,", "<meta name=keywords content='", f"'><p>{SENTENCE * 3}"),
    "long description": repeated("x ", "<meta name=description content='", f"'><p>{SENTENCE * 3}"),
    "long canonical link": repeated("../a/", "<link rel=canonical href='", f"'><p>{SENTENCE * 3}"),
    "long rel": repeated("canonical ", "<link href=/a rel='", f"'><p>{SENTENCE * 3}"),
    "long date": repeated(" ", "<meta name=date content='", f"2024-01-01'><p>{SENTENCE * 3}"),
    "long locale": repeated("en_", "<meta property=og:locale content='", f"'><p>{SENTENCE * 3}"),
    "long doctype": repeated("x ", "<!DOCTYPE html ", f"><p>{SENTENCE * 3}"),
    "entity declarations": numbered('<!ENTITY e# "&e;&e;">', "<!DOCTYPE html [", f"]><p>{SENTENCE * 3}"),
    "long zeros in a reference": repeated("0", "<p>&#", f"1;{SENTENCE * 3}"),
    "distinct ids": numbered("<p id=a#>x</p>"),
    "distinct elements": numbered("<x#>x</x#>"),
    "distinct anchors": numbered("<a href=/#>name of # here</a> "),
}

_JSON = {
    "type lists": repeated('"@type":[', '{"datePublished":"2024-01-01","a":'),
    "equal signs in a tag": repeated("=", '{"articleBody":"<p ', '"}'),
    "escaped equal signs in a tag": repeated("=", '{"articleBody":"\\u003cp ', '"}'),
    "attributes": numbered(" a#=1", '{"articleBody":"<p', '>x</p>"}'),
    "escaped attributes": numbered(" a#=1", '{"articleBody":"&lt;p', '&gt;x&lt;/p&gt;"}'),
    "bodies": repeated('{"articleBody":"<p>x</p>"},', "[", "{}]"),
    "nested graphs": mirrored('{"@graph":', "}", "[]"),
    "arrays": repeated("[", '{"datePublished":"2024-01-01","a":'),
    "closed arrays": mirrored("[", "]", '{"datePublished":"2024-01-01"}'),
    "objects": mirrored('{"a":', "}", '"datePublished"'),
    "digits": repeated("1", '{"datePublished":"2024-01-01","a":', "}"),
    "graph": repeated('{"@type":"x"},', '{"@graph":[', '{"datePublished":"2024-01-01"}]}'),
    "keywords": numbered('"k#",', '{"datePublished":"2024-01-01","keywords":[', '"z"]}'),
    "long headline": repeated("a ", '{"datePublished":"2024-01-01","headline":"', '"}'),
    "long date": repeated("1", '{"datePublished":"', '"}'),
    "backslashes": repeated("\\\\", '{"datePublished":"', '"}'),
    "spaces": repeated(" ", '{"datePublished":', "1}"),
    "exponent": repeated("9", '{"datePublished":1e', "}"),
}

_ENCODINGS = {
    "utf-16": encoded(repeated(f"<p>{SENTENCE}</p>"), "utf-16"),
    "utf-16 of empty elements": encoded(repeated("<div></div>word"), "utf-16"),
    "utf-32": encoded(repeated(f"<p>{SENTENCE}</p>"), "utf-32"),
    "utf-7": encoded(repeated("<p>+AGEAYgBj-</p>", "<meta charset=utf-7>"), "ascii"),
    "gbk declared as utf-8": encoded(repeated("<p>综上所述，图书馆延长开放时间。</p>", "<meta charset=utf-8>"), "gbk"),
    "big5": encoded(repeated("<p>綜上所述，圖書館延長開放時間。</p>"), "big5"),
    "shift_jis": encoded(repeated("<p>図書館は週末の開館時間を延長する。</p>"), "shift_jis"),
    "iso-2022-jp": encoded(repeated("<p>図書館は週末</p>", "<meta charset=iso-2022-jp>"), "iso-2022-jp"),
    "hz": encoded(repeated("<p>图书馆</p>", "<meta charset=hz-gb-2312>"), "hz"),
    "bytes that no encoding has": raw(b"<p>\xff\xfe\x81\x00\xc3</p>", b"<p>"),
    "one bad byte": raw(b"\xff", b"<p>"),
    "bad pairs": raw(b"\xc3\x28", b"<meta charset=utf-8><p>"),
    "surrogates in utf-8": raw(b"\xed\xa0\x80", b"<p>"),
    "overlong utf-8": raw(b"\xc0\xaf", b"<p>"),
    "escapes of iso-2022": raw(b"\x1b$B\x1b(B", b"<meta charset=iso-2022-kr><p>"),
    "zeros": raw(b"a\0", b"<p>" + b"x" * 2000),
    "byte order marks": raw(b"\xef\xbb\xbf", b"\xef\xbb\xbf<p>"),
    "odd utf-16": raw(b"\x00\xd8", b"\xff\xfe"),
    "charset declarations": encoded(repeated("<meta charset=x-y>"), "ascii"),
}

_TEXTS = {
    "combining marks": "\u0315\u0300",
    "combining marks in order": "\u0300",
    "marks of three classes": "\u0315\u0300\u0327",
    "marks on letters": "a" + "\u0315\u0300" * 20,
    "marks and joiners": "\u0315\u0300" * 10 + "\u200d",
    "marks and graphemes": "\u0315\u0300" * 10 + "\u034f",
    "marks that decompose": "\u0f73\u0f75",
    "marks and iota": "\u0345\u0315",
    "voiced marks": "か\u3099\u309a",
    "vowel signs": "\u093e\u0947",
    "Arabic marks": "\u064b\u064e\u0651",
    "Hebrew points": "\u05b0\u05bc\u05c1",
    "Thai marks": "\u0e31\u0e48",
    "enclosing marks": "\u20dd",
    "modifiers": "\U0001f3fb",
    "joiners": "\u200d",
    "joined emoji": "\U0001f469\u200d",
    "variation selectors": "\ufe0f",
    "ideographic variations": "\U000e0100",
    "tags": "\U000e0061",
    "flags": "\U0001f1e9",
    "bidi controls": "\u202e\u2066",
    "jamo": "\u1100",
    "jamo vowels": "\u1161",
    "jamo finals": "\uac00\u11a8\u11a8",
    "ligatures": "\ufdfa",
    "fractions": "½",
    "superscript signs": "⁺",
    "superscripts": "x⁺²",
    "traditional": "體\u200b",
    "long word": "a",
    "long Russian word": "ж",
    "long Chinese word": "的",
    "long Chinese name": "龘",
    "Chinese without punctuation": "图书馆昨日宣布从下月起延长周末开放时间",
    "Chinese numerals": "一二三四五六七八九",
    "Chinese units": "万亿千百十",
    "Thai without spaces": "ห้องสมุดขยายเวลาเปิดให้บริการ",
    "Thai consonants": "ก",
    "Khmer": "បណ្ណាល័យ",
    "Khmer signs": "\u17d2\u1780",
    "Burmese": "စာကြည့်တိုက်",
    "Lao": "ຫໍສະຫມຸດ",
    "kana": "としょかん",
    "long vowel marks": "ー",
    "Japanese": "図書館は週末の開館時間を延長する",
    "Korean": "도서관",
    "Arabic": "المكتبة",
    "digits": "1",
    "zeros": "0",
    "numbers": "1 ",
    "decimals": "1.",
    "points": ".1.1.1",
    "thousands": "1,111,",
    "groups": ",111",
    "spaced groups": " 111",
    "apostrophes": "1'111",
    "dates": "2024-01-01 ",
    "currencies": "$",
    "currency and letters": "a$1",
    "signs": "+-±",
    "dashes": "-",
    "dashes and digits": "1-",
    "slashes": "a/",
    "colons": "1:",
    "stars": "*",
    "primes": "1′",
    "comparisons": "<=>",
    "arrows": "→",
    "powers": "^",
    "sharps": "#",
    "full stops": ".",
    "ellipses": "…",
    "question marks": "?",
    "sentences of a letter": "a. ",
    "sentences": "Harbour pier. ",
    "new lines": "\n",
    "words on lines": "word\n",
    "spaces": " ",
    "wide spaces": "\u3000",
    "line separators": "\u2028",
    "tabs": "\t",
    "zeros of Unicode": "\0",
    "words and zeros": "a\0",
    "middle dots": "a·",
    "apostrophes in words": "a'",
    "underscores": "a_",
    "commas in numbers": "1,",
    "quotes": "\"'",
    "brackets": "[赞]",
    "labels": "【转发】",
    "repost names": "//@a:",
    "at signs": "@",
    "references": "&amp;",
    "ampersands": "&",
    "numeric references": "&#65;",
    "emoji": "\U0001f600",
    "Han of other planes": "\U00020000",
    "private use": "\ue000",
    "noncharacters": "\uffff",
    "surrogates": "\ud800",
    "markers": "综上所述但是",
    "marker phrases": "in conclusion ",
    "halves of a phrase": "in ",
    "stop words": "the of and ",
    "mixed scripts": "aж的กか",
}

_NUMBERED_TEXTS = {
    "distinct words": numbered("w# "),
    "distinct short sentences": numbered("harbour #. "),
    "distinct numbers": numbered("# "),
    "distinct numbers and units": numbered("1# a#; "),
    "distinct lines": numbered("line #\n"),
    "distinct Chinese": spread("\u4e00", 7),
    "distinct Korean": spread("\uac00", 1),
    "number after letters": repeated("a", after="$1"),
    "marks after Chinese": repeated("\u0315\u0300", before="图书馆延长开放时间"),
    "superscript signs without number": repeated("⁺", before="x² "),
    "title again": repeated("word ", before="Pier\n"),
}

_URLS = {
    "parameters": numbered("&a#=1", "http://a.test/?"),
    "equal parameters": repeated("&a=1", "http://a.test/?"),
    "empty parameters": repeated("&", "http://a.test/?"),
    "tracking": repeated("&utm_source=a", "http://a.test/?"),
    "companions": lambda size: "http://a.test/?" + "cfid&" * (size // 10) + numbered("b#&")(size // 2),
    "dotted values": repeated("a.", "http://a.test/?spm="),
    "random values": repeated("a1", "http://a.test/?sessionid="),
    "words": repeated("a-", "http://a.test/?pk_source=", "!"),
    "escapes": repeated("%41", "http://a.test/"),
    "broken escapes": repeated("%4", "http://a.test/"),
    "escapes of marks": repeated("%CC%95%CC%80", "http://a.test/"),
    "dot segments": repeated("../", "http://a.test/"),
    "dot and name segments": repeated("a/../", "http://a.test/"),
    "slashes": repeated("/", "http://a.test/"),
    "plain path": repeated("/a", "http://a.test", "!"),
    "hyphens in a path": repeated("a-", "http://a.test/", "!"),
    "labels": repeated("a.", "http://", "test/"),
    "hyphens in a host": repeated("a-", "http://", ".test/"),
    "long host": repeated("a", "http://", ".test/"),
    "international host": repeated("图", "http://", ".test/"),
    "distinct international host": lambda size: "http://" + spread("\u4e00", 7)(size) + ".test/",
    "international labels": repeated("图.", "http://", "test/"),
    "marks in a host": repeated("\u0315\u0300", "http://a", ".test/"),
    "soft hyphens in a host": repeated("\u00ad", "http://a", ".test/"),
    "punycode labels": repeated("xn--a.", "http://", "test/"),
    "user": repeated("a@", "http://", "b.test/"),
    "port": repeated("1", "http://a.test:", "/"),
    "colons": repeated(":", "http://[", "]/"),
    "fragment": repeated("%aa", "http://a.test/#!"),
    "sessions in a path": repeated(";jsessionid=a", "http://a.test/"),
    "path parameters": repeated(";", "http://a.test/"),
    "white space": repeated(" ", "http://a.test/", "a"),
    "plus signs": repeated("+", "http://a.test/?a="),
    "default page": repeated("a", "http://a.test/index."),
}

UNITS: tuple[Unit, ...] = (
    *(Unit(f"html: {name}", "html", repeated(unit, "<html><body>")) for name, unit in _BLOCKS.items()),
    *(Unit(f"html: {name} after an article", "html", repeated(unit, ARTICLE)) for name, unit in _BLOCKS.items()),
    *(Unit(f"html: {name}", "html", mirrored(*tags)) for name, tags in _NESTED.items()),
    *(
        Unit(f"html: {filling} in {name}", "html", inside(*tags, filler, 120))
        for name, tags in _NESTED.items()
        for filling, filler in (
            ("text", SENTENCE),
            ("paragraphs", f"<p>{SENTENCE}</p>"),
            ("line breaks", "x<br>"),
            ("links", "<a href=/a rel=tag>x</a> y "),
        )
    ),
    *(Unit(f"html: {name}", "html", make) for name, make in _ATTRIBUTES.items()),
    *(Unit(f"html: {name}", "html", make) for name, make in _ENCODINGS.items()),
    *(Unit(f"json: {name}", "json", make) for name, make in _JSON.items()),
    *(Unit(f"text: {name}", "text", repeated(unit)) for name, unit in _TEXTS.items()),
    *(Unit(f"text: {name}", "text", make) for name, make in _NUMBERED_TEXTS.items()),
    *(Unit(f"url: {name}", "url", make) for name, make in _URLS.items()),
)
"""All units, by distinct names."""


def units_of(kind: str) -> tuple[Unit, ...]:
    """Return the units of one kind."""
    return tuple(unit for unit in UNITS if unit.kind == kind)
