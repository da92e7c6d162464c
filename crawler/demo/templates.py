"""Five site designs: the frames around a story that an extractor must see through.

Each frame has its own markup, navigation, side columns and footer, because that is what differs between
the copies of a story on real sites. Text goes in escaped; links are (address, label) pairs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from crawler.demo.articles import Article

__all__ = ["FRAMES", "Frame", "Link", "article_page", "list_page"]

Link = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Frame:
    """One site's design: `render(title, main, links, head)` gives a whole document."""

    site_name: str
    lang: str
    encoding: str
    render: Callable[[str, str, Sequence[Link], str], str]
    more: str


def _anchors(links: Sequence[Link], tag: str = "li") -> str:
    return "\n".join(f'<{tag}><a href="{escape(url)}">{escape(label)}</a></{tag}>' for url, label in links)


def _daily(title: str, main: str, links: Sequence[Link], head: str) -> str:
    return f"""<!DOCTYPE html><html lang="zh-CN"><head><meta charset="utf-8"><title>{escape(title)}_青河日报网</title>{head}
<style>.side{{float:right;width:280px}}</style></head><body>
<div id="top"><a href="/daily/">青河日报网</a> <a href="/daily/local/">本地</a> <a href="/daily/culture/">文化</a>
<a href="/daily/economy/">经济</a> <a href="/daily/society/">社会</a> <a href="/daily/sports/">体育</a> <a href="/daily/weather/">天气</a>
<form><input name="q" placeholder="站内搜索"><button>搜索</button></form></div>
<div class="crumb">当前位置：首页 &gt; 新闻 &gt; 正文</div>
<div class="side"><h4>热门阅读</h4><ul>{_anchors(links)}</ul><h4>便民服务</h4><p>公交查询 水电缴费 挂号预约</p></div>
<div class="main">{main}</div>
<div class="share">分享到：微信 微博 复制链接</div>
<div id="footer"><a href="/daily/about.html">关于我们</a> 青河日报社版权所有 投稿邮箱见关于页 违法和不良信息举报电话见公告栏</div>
</body></html>"""


def _portal(title: str, main: str, links: Sequence[Link], head: str) -> str:
    return f"""<html><head><meta http-equiv="Content-Type" content="text/html; charset=gb18030"><title>{escape(title)} - 快看门户</title>{head}</head><body>
<table width="100%"><tr><td><a href="/portal/">快看门户</a> | 头条 | 娱乐 | 财经 | 汽车 | <a href="/">全部站点</a></td></tr></table>
<table width="960"><tr valign="top"><td width="680">{main}
<p class="tips"><a href="/private/login">登录</a>后参与评论，文明上网，理性发言。共有 0 条评论</p></td>
<td width="280"><b>猜你喜欢</b>{_anchors(links, "p")}<b>今日彩头</b><p>转发本文有机会获得电影票两张</p></td></tr></table>
<center>快看门户 网络经营许可备案中 客服在线时间九点到十八点</center></body></html>"""


def _fanti(title: str, main: str, links: Sequence[Link], head: str) -> str:
    return f"""<!DOCTYPE html><html lang="zh-Hant"><head><meta charset="utf-8"><title>{escape(title)}｜海燕新聞</title>{head}</head><body>
<header><nav><ul><li><a href="/fanti/">海燕新聞</a></li><li>即時</li><li>兩岸</li><li>生活</li><li>專欄</li></ul></nav></header>
<main><div class="col">{main}</div><aside><h3>延伸閱讀</h3><ul>{_anchors(links)}</ul></aside></main>
<footer><p>海燕新聞網 未經授權請勿轉載</p><p>訂閱電子報 隱私權聲明 廣告刊登</p></footer></body></html>"""


def _courier(title: str, main: str, links: Sequence[Link], head: str) -> str:
    return f"""<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} | The Harbour Courier</title>{head}</head><body>
<header><a href="/courier/">The Harbour Courier</a><nav><a href="/courier/harbour/">Harbour</a> <a href="/courier/culture/">Culture</a>
<a href="/courier/science/">Science</a> <a href="/courier/business/">Business</a></nav><span>Subscribe from 3 crowns a week</span></header>
<main>{main}</main>
<aside><h2>Most read</h2><ol>{_anchors(links)}</ol></aside>
<div class="newsletter"><h3>The tide table, every morning</h3><p>Weather, ferries and one good story in your inbox.</p></div>
<footer><a href="/courier/about.html">About the Courier</a> Registered at Port Maren. Letters are welcome and may be shortened.</footer></body></html>"""


def _wire(title: str, main: str, links: Sequence[Link], head: str) -> str:
    return f"""<html lang="en"><head><meta charset="iso-8859-1"><title>{escape(title)} :: NorthWire</title>{head}</head><body>
<div class="bar">NorthWire &middot; <a href="/wire/">all stories</a> &middot; <a href="/">sites</a> &middot; cookies &middot; sign in</div>
<div class="wrap"><div class="content">{main}</div>
<div class="promo"><div>Sponsored: learn to sail in a weekend</div><div>Quiz: which knot are you?</div></div>
<div class="more"><span>You may also like</span>{_anchors(links, "div")}</div></div>
<div class="legal">NorthWire collects stories from partners. We use cookies to remember that you dislike cookies.</div></body></html>"""


FRAMES = {
    "daily": Frame("青河日报", "zh", "utf-8", _daily, "阅读全文"),
    "portal": Frame("快看门户", "zh", "gb18030", _portal, "详情"),
    "fanti": Frame("海燕新聞", "zh", "utf-8", _fanti, "更多"),
    "courier": Frame("The Harbour Courier", "en", "utf-8", _courier, "Read on"),
    "wire": Frame("NorthWire", "en", "iso-8859-1", _wire, "more"),
}


def _body(article: Article) -> str:
    paragraphs = "\n".join(f"<p>{escape(text)}</p>" for text in article.paragraphs)
    source = f'<p class="source">{escape(article.source_line)}</p>' if article.source_line else ""
    return f"{paragraphs}\n{source}"


def article_page(site: str, article: Article, links: Sequence[Link], canonical: str | None = None) -> bytes:
    """Return a story as `site` would publish it, in the site's own encoding."""
    frame = FRAMES[site]
    by = "记者 " if frame.lang == "zh" else "By "
    main = (
        f"<article><h1>{escape(article.title)}</h1>"
        f'<div class="meta"><span>{by}{escape(article.author)}</span> <time datetime="{article.date}">{article.date}</time></div>'
        f"{_body(article)}</article>"
    )
    head = (
        f'<meta name="keywords" content="{escape(",".join(article.tags))}">'
        f'<meta property="og:site_name" content="{escape(frame.site_name)}">'
        f'<meta property="article:published_time" content="{article.date}">'
    )
    if canonical:
        head += f'<link rel="canonical" href="{escape(canonical)}">'
    return frame.render(article.title, main, links, head).encode(frame.encoding, "xmlcharrefreplace")


def list_page(site: str, title: str, entries: Sequence[tuple[str, Article]], links: Sequence[Link] = ()) -> bytes:
    """Return a page that lists stories, each with its first sentence."""
    frame = FRAMES[site]
    stop = "。" if frame.lang == "zh" else ". "
    items = "\n".join(
        f'<div class="item"><h3><a href="{escape(url)}">{escape(story.title)}</a></h3>'
        f"<p>{escape(story.paragraphs[0].split(stop)[0].rstrip(stop) + stop.strip())} <span>{story.date}</span>"
        f' <a href="{escape(url)}">{frame.more}</a></p></div>'
        for url, story in entries
    )
    main = f"<h1>{escape(title)}</h1>\n{items}"
    return frame.render(title, main, links, "").encode(frame.encoding, "xmlcharrefreplace")
