"""The demo site is complete and closed, and its truth is consistent."""

import re
from collections import Counter

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


def test_every_copy_has_an_original() -> None:
    """A family is one original and its copies; a page that copies nothing is alone, but for its print view."""
    families = Counter(page.truth.family for page in PAGES.values() if page.truth.relation is not Relation.SAME_PAGE)
    originals = {page.truth.family for page in PAGES.values() if page.truth.relation is Relation.ORIGINAL}
    for page in PAGES.values():
        if page.truth.relation in (Relation.COPY, Relation.PARTLY):
            assert page.truth.family in originals
        if page.truth.relation is Relation.OWN:
            assert families[page.truth.family] == 1
