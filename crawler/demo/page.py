"""A page of the demo site: its address, what is served there, and the truth about it."""

from dataclasses import dataclass

from crawler.demo.templates import FRAMES
from crawler.demo.truth import Truth

__all__ = ["DemoPage", "content_type"]


@dataclass(frozen=True, slots=True)
class DemoPage:
    """One address of the site. bodies: what is served at the 1st, 2nd, … visit; the last one from then on."""

    path: str
    bodies: tuple[bytes, ...]
    content_type: str
    truth: Truth
    in_sitemap: bool = False


def content_type(site: str) -> str:
    """The header that `site` sends with its pages."""
    return f"text/html; charset={FRAMES[site].encoding}"
