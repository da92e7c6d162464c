"""The demo site is complete and closed, and its truth is consistent."""

import re
from collections import Counter

from twinsieve_crawler.demo.articles import load_articles
from twinsieve_crawler.demo.site import build_site
from twinsieve_crawler.demo.truth import Relation

PAGES = build_site()


def links(path: str) -> set[str]:
    return {link.decode() for link in re.findall(rb'href="(/[^"]*)"', PAGES[path].bodies[0])}


def test_every_build_has_the_same_pages() -> None:
    """Two builds are equal byte for byte, and have more than sixty pages."""
    assert len(PAGES) > 60
    assert build_site() == PAGES


def test_every_link_leads_to_a_page() -> None:
    """Only the login page is not part of the site; robots.txt forbids it."""
    assert {link for path in PAGES for link in links(path)} - set(PAGES) == {"/private/login"}


def test_every_page_can_be_reached_from_the_home_page() -> None:
    """A crawl by links and canonical links visits the whole site."""
    seen, waiting = {"/"}, ["/"]
    while waiting:
        new = (links(waiting.pop()) & set(PAGES)) - seen
        seen |= new
        waiting += new
    assert seen == set(PAGES)


def test_every_copy_has_an_original() -> None:
    """A family is one original and its copies; a page that copies nothing is alone, but for its print view."""
    families = Counter(page.truth.family for page in PAGES.values() if page.truth.relation is not Relation.SAME_PAGE)
    originals = {page.truth.family for page in PAGES.values() if page.truth.relation is Relation.ORIGINAL}
    for page in PAGES.values():
        if page.truth.relation in (Relation.COPY, Relation.PARTLY):
            assert page.truth.family in originals
        if page.truth.relation is Relation.OWN:
            assert families[page.truth.family] == 1


def test_the_stories_have_the_length_of_news() -> None:
    """Stories have 400 to 1,500 characters in Chinese, and 150 to 500 words in English."""
    for name, story in load_articles().items():
        text = "".join(story.paragraphs)
        size, minimum, maximum = (len(text), 400, 1500) if name.startswith("zh") else (len(text.split()), 150, 500)
        assert minimum <= size <= maximum, name
