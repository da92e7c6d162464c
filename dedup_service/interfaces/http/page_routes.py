"""The routes of the web page: `/`, `/why`, `/group`, and their files under `/assets/`.

How: the files of `page/` are served from the package, and the chart library (plotly.js) from the Python package that
contains it, so that nothing is fetched from other servers. Long files are compressed. Assets have an ETag, so that a
browser downloads each once; the pages, a few kilobytes, come anew. What the pages have in common is in files of its
own: a line `<!-- part: NAME -->` of a page stands for `part_NAME.html`.
Invariant: pages and files are the same for everyone and contain no data; the page gets its data from `/api/…` and
`/events`.
"""

import re
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

PAGE = Path(__file__).with_name("page")
CHARTS = "plotly.min.js"
PAGES = {"/": "index.html", "/why": "why.html", "/group": "group.html"}
ICON = "/favicon.ico"  # requested by browsers for answers that are not our pages
PART = re.compile(rb"^ *<!-- part: ([a-z]+) -->\n", re.MULTILINE)
REVALIDATE = {"cache-control": "private, no-cache"}  # a browser may keep it, but must ask whether it has changed


def page_routes() -> list[BaseRoute]:
    """Return the routes of the page."""
    pages = [Route(path, _page(name)) for path, name in PAGES.items()]
    assets = Mount(
        "/assets",
        routes=[Route(f"/{CHARTS}", _charts), Mount("/", _Assets(directory=PAGE))],
        middleware=[Middleware(GZipMiddleware, minimum_size=2048, compresslevel=6)],
    )
    return [*pages, Route(ICON, _icon), assets]


@cache
def page_html(name: str) -> bytes:
    """Return a page with the parts that it shares with others."""
    return PART.sub(lambda part: (PAGE / f"part_{part[1].decode()}.html").read_bytes(), (PAGE / name).read_bytes())


def token_page() -> bytes:
    """Return the page that asks a person for the token."""
    return page_html("token.html")


class _Assets(StaticFiles):
    """Files of a folder, which a browser may cache."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        answer.headers.update(REVALIDATE)
        return answer


def _page(name: str) -> Callable[[Request], Awaitable[Response]]:
    html = page_html(name)

    async def page(request: Request) -> Response:  # noqa: ARG001 - Starlette's signature
        return HTMLResponse(html, headers=REVALIDATE)

    return page


async def _icon(request: Request) -> Response:  # noqa: ARG001 - Starlette's signature
    return FileResponse(PAGE / "icon.svg", media_type="image/svg+xml")


async def _charts(request: Request) -> Response:
    """Serve the chart library; 404 if it is not installed, and the page then shows tables only."""
    plotly = find_spec("plotly")
    if plotly is None or not plotly.submodule_search_locations:
        return Response(
            "plotly is not installed: pip install 'twinsieve[dashboard]'\n", status_code=404, media_type="text/plain"
        )
    folder = Path(plotly.submodule_search_locations[0], "package_data")
    return await _Assets(directory=folder).get_response(CHARTS, request.scope)
