"""`check_html`: a page from its HTML and its address, in one call."""

from collections.abc import Iterator

import pytest

from dedup_service import NearDuplicateFilter, RecordError, Verdict, VerdictKind, extract, to_page

FERRY = (
    "The island ferry will run every half hour from the first of May, the harbour office said on Monday. "
    "Two boats that had lain in the yard since autumn were painted and fitted with quieter engines over the winter. "
    "Fares stay as they are, and bicycles travel free before nine in the morning. "
    "Residents had asked for the change in a petition that gathered eleven hundred names in a fortnight. "
    "The council will look at the figures again in September and may add a late boat on Fridays."
)
LIBRARY = (
    "区图书馆本周起把闭馆时间推迟到晚上十点,周末也不例外。馆长说,冬天来自习的学生常常找不到座位,"
    "所以二楼的旧报刊库改成了阅览室,新添了一百二十张桌子和四台饮水机。借书规则没有变化,每人仍可借十五册,"
    "为期三十天。附近两所中学已经组织志愿者,每晚帮助管理员整理书架。居民如果有意见,可以在门口的信箱留言。"
    "馆里还打算在春天开办夜间讲座,每月两次,请作家和老师来谈读书。"
)


def html(title: str, text: str, *, lang: str = "en", charset: str = "utf-8", site: str = "") -> str:
    """An article page; `site` changes everything around the article."""
    return f"""<!DOCTYPE html><html lang="{lang}"><head><meta charset="{charset}"><title>{title}</title></head>
<body><nav><a href="/">{site} home</a> <a href="/news">{site} news</a></nav>
<article><h1>{title}</h1><p>{text}</p></article><footer>{site} imprint</footer></body></html>"""


ENGLISH = html("Ferry to run every half hour", FERRY, site="Harbour Post")
CHINESE = html("图书馆延长开放时间", LIBRARY, lang="zh", site="晨报")
ELSEWHERE = html("图书馆开到十点", LIBRARY, lang="zh", charset="gbk", site="区讯")


@pytest.fixture
def dedup() -> Iterator[NearDuplicateFilter]:
    """A filter in memory."""
    with NearDuplicateFilter.open(None) as opened:
        yield opened


def test_copies_on_other_sites_are_duplicates(dedup: NearDuplicateFilter) -> None:
    """English and Chinese copies are found, whatever surrounds the article; two articles are not duplicates."""
    first = [
        dedup.check_html(ENGLISH, "https://post.example/ferry"),
        dedup.check_html(CHINESE, "https://morning.example/library"),
    ]
    assert [verdict.kind for verdict in first] == [VerdictKind.UNIQUE] * 2
    copy = dedup.check_html(html("More boats to the island", FERRY, site="Island Weekly"), "https://weekly.example/7")
    assert (copy.kind, copy.duplicate_of_url) == (VerdictKind.DUPLICATE, "https://post.example/ferry")
    assert (copy.id, copy.url) == ("https://weekly.example/7", "https://weekly.example/7")
    visit = dedup.check_html(CHINESE, "https://morning.example/library")
    assert visit.kind is VerdictKind.UNCHANGED


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (ELSEWHERE.encode("gbk"), None),
        (ELSEWHERE.encode("gbk"), "text/html; charset=utf-8"),
        (ELSEWHERE.replace('<meta charset="gbk">', "").encode("gbk"), "text/html; charset=GB2312"),
        (ELSEWHERE.encode("utf-8"), None),
    ],
)
def test_bytes_are_decoded_as_they_are(dedup: NearDuplicateFilter, body: bytes, content_type: str | None) -> None:
    """GBK by its <meta>, against a wrong header, or by the header alone; and UTF-8 that says it is GBK."""
    dedup.check_html(CHINESE, "https://morning.example/library")
    verdict = dedup.check_html(body, "https://district.example/10", content_type=content_type)
    assert (verdict.kind, verdict.duplicate_of_url) == (VerdictKind.DUPLICATE, "https://morning.example/library")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "empty page"),
        (b"", "empty page"),
        ("<html><body><script>render()</script></body></html>", "no main text"),
        ("just words", "not HTML: no markup"),
        (b"%PDF-1.7 ...", "not HTML: PDF data"),
    ],
)
def test_a_page_that_cannot_be_extracted_is_undecided(
    dedup: NearDuplicateFilter, body: str | bytes, reason: str
) -> None:
    """It is passed on with the reason, and no later page repeats it."""
    verdicts = [dedup.check_html(body, f"https://a.example/{number}") for number in range(2)]
    assert [(verdict.kind, verdict.reason) for verdict in verdicts] == [(VerdictKind.UNDECIDED, reason)] * 2


def test_a_page_over_the_size_limit_is_undecided(dedup: NearDuplicateFilter) -> None:
    """The reason names both sizes."""
    verdict = dedup.check_html(b"<p>" + b"x" * (10 << 20), "https://a.example/1")
    assert verdict.kind is VerdictKind.UNDECIDED
    assert verdict.reason == "page too large: 10485763 bytes, limit 10485760"


@pytest.mark.parametrize("url", ["", "ferry.html", "//post.example/ferry", "mailto:post@post.example", "http://"])
def test_a_malformed_url_is_the_error_of_to_page(dedup: NearDuplicateFilter, url: str) -> None:
    """The same exception with the same message, and nothing is stored."""
    with pytest.raises(RecordError) as expected:
        to_page(extract(ENGLISH), url)
    with pytest.raises(RecordError) as raised:
        dedup.check_html(ENGLISH, url)
    assert str(raised.value) == str(expected.value)
    assert dedup.info().sequence == 0


def test_a_page_with_the_text_of_its_canonical_link_is_a_visit(dedup: NearDuplicateFilter) -> None:
    """A second address of a kept page is a repeat visit, by the link in its head."""
    linked = ENGLISH.replace("</head>", '<link rel="canonical" href="https://post.example/ferry"></head>')
    assert dedup.check_html(linked, "https://post.example/ferry").kind is VerdictKind.UNIQUE
    assert dedup.check_html(linked, "https://post.example/ferry?from=mail").kind is VerdictKind.UNCHANGED
    assert dedup.info().claim_refused == 0


def test_a_page_with_another_text_than_its_canonical_link_stays_itself(dedup: NearDuplicateFilter) -> None:
    """The page that it names keeps its entry, and the refused claim is counted."""
    named = '<link rel="canonical" href="https://post.example/bridge"></head>'
    assert dedup.check_html(CHINESE, "https://post.example/bridge").kind is VerdictKind.UNIQUE
    thief = dedup.check_html(ENGLISH.replace("</head>", named), "https://post.example/x")
    assert (thief.kind, thief.claim_refused) == (VerdictKind.UNIQUE, True)
    assert dedup.check_html(CHINESE, "https://post.example/copy").kind is VerdictKind.DUPLICATE
    assert dedup.info().claim_refused == 1
    assert dedup.retract("https://post.example/x") == thief
    assert dedup.check_html(CHINESE, "https://post.example/another").kind is VerdictKind.DUPLICATE


def test_a_repeated_delivery_gets_the_verdict_it_had(dedup: NearDuplicateFilter) -> None:
    """The delivery is recognised by its id, as for `check`."""

    def check(delivery_id: bytes | None) -> Verdict:
        return dedup.check_html(ENGLISH, "https://post.example/ferry", delivery_id=delivery_id)

    first = check(b"response 1")
    assert check(b"response 1") == first
    assert dedup.verdict_of(b"response 1") == first
    assert check(b"response 2").kind is VerdictKind.UNCHANGED
