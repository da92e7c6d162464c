"""HTML → `Page`: what a reader would call the article, and what the page says about itself.

The way: bytes → text (`core.text.encoding`) → one lxml tree (`tree`) → what the head states (`statements`, `headline`,
`language`) → link lists taken out (`boilerplate`) → main text (`main_text`, trafilatura) → `Extraction` → `Page`.
Invariant: no page raises; one without text says why in `problem`.
"""

from dedup_service.core.extraction.extracted import Extraction, to_page
from dedup_service.core.extraction.from_html import MAX_HTML_BYTES, extract, warm_up

__all__ = ["MAX_HTML_BYTES", "Extraction", "extract", "to_page", "warm_up"]
