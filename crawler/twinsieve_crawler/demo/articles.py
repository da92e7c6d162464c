"""Reads the stories of the demo: one text file each, with `key: value` lines, a blank line, and paragraphs.

Invariant: nothing is generated here; the original pages have the text of the files.
"""

from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Article:
    """One story as its author wrote it, before a site renders it.

    name: of the file, `zh-bridge`. lang: its first two letters. headline: the title that a copy may get.
    """

    name: str
    lang: str
    title: str
    author: str
    date: str
    paragraphs: tuple[str, ...]
    headline: str = ""
    section: str = ""
    tags: tuple[str, ...] = ()
    source_line: str = ""


def parse_article(name: str, content: str) -> Article:
    """Return the story that a file holds; KeyError if a header line is missing."""
    head, *paragraphs = content.strip().split("\n\n")
    header = dict(line.split(": ", 1) for line in head.splitlines())
    return Article(
        name=name,
        lang=name[:2],
        title=header["title"],
        headline=header.get("headline", header["title"]),
        section=header["section"],
        author=header["author"],
        date=header["date"],
        tags=tuple(header["tags"].split(", ")),
        paragraphs=tuple(paragraph.replace("\n", " ") for paragraph in paragraphs),
    )


def load_articles() -> dict[str, Article]:
    """Return every story by name, in alphabetical order."""
    folder = files("twinsieve_crawler.demo") / "articles"
    texts = sorted((item.name, item.read_text("utf-8")) for item in folder.iterdir() if item.name.endswith(".txt"))
    return {name[:-4]: parse_article(name[:-4], content) for name, content in texts}
