"""Extraction: from HTML to a `Page` with the article and what the page states about itself.

The steps: decode the bytes (`core.text.encoding`), parse them to one lxml tree (`boilerplate`), read what
the page states (`statements`, `language`), remove lists of links (`boilerplate`) and cards (`labelled_cards`),
find the main text (`main_text`, by trafilatura), and give the `Extraction` its address (`extracted`).
Invariant: no page raises; a page without text gives the reason in `problem`.
"""

from dedup_service.core.extraction.extracted import Extraction, to_page
from dedup_service.core.extraction.from_html import extract, warm_up

__all__ = ["Extraction", "extract", "to_page", "warm_up"]
