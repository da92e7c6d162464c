"""Scrapy's MetaRefreshMiddleware, which raises for an address in a page that is no URL: the page would be lost."""

from scrapy import Request
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware
from scrapy.http import Response


class RefreshMiddleware(MetaRefreshMiddleware):
    """Follows refreshes; a page whose base or refresh is no URL has none.

    Invariant: no page makes `process_response` raise ValueError.
    """

    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Return the request that the page refreshes to, or the page."""
        try:
            return super().process_response(request, response)
        except ValueError:
            return response
