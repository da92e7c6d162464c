"""The routes of the web page: `/`, `/why`, `/group`, and their files under `/assets/`.

How: the files of `page/` are served from the package unchanged, and the chart library (plotly.js) from the
Python package that contains it, so that nothing is fetched from other servers. Long files are compressed,
and all have an ETag, so that a browser downloads each once.
Invariant: the files are the same for everyone and contain no data; the page gets its data from `/api/…` and
`/events`.
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
    "/group": ("group.html", HTML),
    "/favicon.ico": ("icon.svg", "image/svg+xml"),  # requested by browsers for answers that are not our pages
}
REVALIDATE = {"cache-control": "private, no-cache"}  # a browser may keep it, but must ask whether it has changed


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
    """Return the page that asks a person for the token."""
    return (PAGE / "token.html").read_bytes()


class _Assets(StaticFiles):
    """Files of a folder, which a browser may cache."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        answer.headers.update(REVALIDATE)
        return answer


def _page(name: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:  # noqa: ARG001 - Starlette's signature
        return FileResponse(PAGE / name, media_type=media_type)

    return page


async def _charts(request: Request) -> Response:
    """Serve the chart library; 404 if it is not installed, and the page then shows tables only."""
    plotly = find_spec("plotly")
    if plotly is None or not plotly.submodule_search_locations:
        return Response(
            "plotly is not installed: pip install 'twinsieve[dashboard]'\n", status_code=404, media_type="text/plain"
        )
    folder = Path(plotly.submodule_search_locations[0], "package_data")
    return await _Assets(directory=folder).get_response(CHARTS, request.scope)
