"""A page of the demo site: its path, what is served there, and the truth about it."""

from dataclasses import dataclass

from twinsieve_crawler.demo.templates import FRAMES
from twinsieve_crawler.demo.truth import Truth


@dataclass(frozen=True, slots=True)
class DemoPage:
    """A page. bodies: what is served at the 1st, 2nd, … visit; later visits get the last one."""

    path: str
    bodies: tuple[bytes, ...]
    content_type: str
    truth: Truth
    in_sitemap: bool = False


def content_type(site: str) -> str:
    """Return the Content-Type header of the pages of `site`."""
    return f"text/html; charset={FRAMES[site].encoding}"
