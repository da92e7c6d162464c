"""The web page: `/`, `/why`, and what they are made of under `/assets/`.

How: the files of `page/` are served from the package as they are, and the chart library (plotly.js) from the Python
package that ships it, so that nothing is fetched from elsewhere. Long files go out compressed, and all with a tag, so
that a browser asks for each once.
Invariant: the files are the same for everybody and hold no data; what the page shows comes from `/api/…` and `/events`.
"""

from collections.abc import Awaitable, Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

__all__ = ["CHARTS", "PAGE", "page_routes", "token_page"]

PAGE = Path(__file__).with_name("page")
CHARTS = "plotly.min.js"
HTML = "text/html; charset=utf-8"
FILES = {
    "/": ("index.html", HTML),
    "/why": ("why.html", HTML),
    "/favicon.ico": ("icon.svg", "image/svg+xml"),  # asked for by browsers where an answer is no page of ours
}
ASK_AGAIN = {"cache-control": "private, no-cache"}  # kept, but asked whether it is still the same


def page_routes() -> list[BaseRoute]:
    """Return the routes of the page."""
    pages = [Route(path, _page(*file)) for path, file in FILES.items()]
    assets = Mount(
        "/assets",
        routes=[Route(f"/{CHARTS}", _charts), Mount("/", _Assets(directory=PAGE))],
        middleware=[Middleware(GZipMiddleware, minimum_size=2048, compresslevel=6)],
    )
    return [*pages, assets]


@cache
def token_page() -> bytes:
    """Return what a browser is shown that has no token yet."""
    return (PAGE / "token.html").read_bytes()


class _Assets(StaticFiles):
    """Files of a folder that a browser may keep."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        answer.headers.update(ASK_AGAIN)
        return answer


def _page(name: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:  # noqa: ARG001 - Starlette's signature
        return FileResponse(PAGE / name, media_type=media_type)

    return page


async def _charts(request: Request) -> Response:
    """The chart library; 404 where it is not installed: the page then shows its tables alone."""
    found = find_spec("plotly")
    if found is None or not found.submodule_search_locations:
        return Response("plotly is not installed\n", status_code=404, media_type="text/plain")
    file = Path(found.submodule_search_locations[0], "package_data")
    return await _Assets(directory=file).get_response(CHARTS, request.scope)
