"""Five site designs: the frames around a story, from which an extractor must find the main text.

Each frame (`frames/*.html`) has its own markup, navigation, side columns and footer, because these differ
between the copies of a story on real sites. Text is escaped; links are (URL, label) pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

from twinsieve_crawler.demo.articles import Article

Link = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Frame:
    """The design of one site.

    link_tag: the element around each link of its side column. more: its label for a link to the full story.
    teaser: index of the paragraph whose first sentence its lists quote.
    """

    name: str
    site_name: str
    lang: str
    encoding: str
    link_tag: str
    more: str
    teaser: int = 0

    def render(self, title: str, main: str, links: Sequence[Link], head: str = "") -> bytes:
        """Return a document in the encoding of the site; `main` and `head` are HTML, the rest is text."""
        tag = self.link_tag
        anchors = "\n".join(f'<{tag}><a href="{escape(url)}">{escape(label)}</a></{tag}>' for url, label in links)
        html = _template(self.name).substitute(title=escape(title), main=main, links=anchors, head=head)
        return html.encode(self.encoding, "xmlcharrefreplace")


FRAMES = {
    frame.name: frame
    for frame in (
        Frame("daily", "青河日报", "zh", "utf-8", "li", "阅读全文"),
        Frame("portal", "快看门户", "zh", "gb18030", "p", "详情", teaser=1),
        Frame("fanti", "海燕新聞", "zh", "utf-8", "li", "更多", teaser=1),
        Frame("courier", "The Harbour Courier", "en", "utf-8", "li", "Read on"),
        Frame("wire", "NorthWire", "en", "iso-8859-1", "div", "more", teaser=1),
    )
}


@cache
def _template(name: str) -> Template:
    return Template((files("twinsieve_crawler.demo") / "frames" / f"{name}.html").read_text("utf-8"))


def _body(article: Article) -> str:
    paragraphs = "\n".join(f"<p>{escape(text)}</p>" for text in article.paragraphs)
    source = f'<p class="source">{escape(article.source_line)}</p>' if article.source_line else ""
    return f"{paragraphs}\n{source}"


def article_page(site: str, article: Article, links: Sequence[Link], canonical: str | None = None) -> bytes:
    """Return the page of a story on `site`, in the encoding of the site."""
    frame = FRAMES[site]
    by = "记者 " if frame.lang == "zh" else "By "
    main = (
        f"<article><h1>{escape(article.title)}</h1>"
        f'<div class="meta"><span>{by}{escape(article.author)}</span> '
        f'<time datetime="{article.date}">{article.date}</time></div>'
        f"{_body(article)}</article>"
    )
    head = (
        f'<meta name="keywords" content="{escape(",".join(article.tags))}">'
        f'<meta property="og:site_name" content="{escape(frame.site_name)}">'
        f'<meta property="article:published_time" content="{article.date}">'
    )
    if canonical:
        head += f'<link rel="canonical" href="{escape(canonical)}">'
    return frame.render(article.title, main, links, head)


def list_page(site: str, title: str, entries: Sequence[tuple[str, Article]], links: Sequence[Link] = ()) -> bytes:
    """Return a page that lists stories, each with one of its sentences."""
    frame = FRAMES[site]
    stop = "。" if frame.lang == "zh" else ". "
    quotes = {url: story.paragraphs[frame.teaser].split(stop)[0].rstrip(stop) + stop.strip() for url, story in entries}
    items = "\n".join(
        f'<div class="item"><h3><a href="{escape(url)}">{escape(story.title)}</a></h3>'
        f"<p>{escape(quotes[url])} <span>{story.date}</span>"
        f' <a href="{escape(url)}">{frame.more}</a></p></div>'
        for url, story in entries
    )
    main = f"<h1>{escape(title)}</h1>\n{items}"
    return frame.render(title, main, links)
