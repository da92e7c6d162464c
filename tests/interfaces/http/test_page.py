"""The files of the web page: all exist, nothing is inline or from other servers, and each is sent once."""

import gzip
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from starlette.applications import Starlette

from dedup_service.interfaces.http.access_guard import AccessGuard, Token
from dedup_service.interfaces.http.page_routes import CHARTS, PAGE, PAGES, page_html, page_routes
from dedup_service.interfaces.http.server import Address, HttpServer
from tests.hangs import HANG_S

SECRET = "correct-horse-battery"
ALL_PAGES = [*PAGES.values(), "token.html"]
ELSEWHERE = re.compile(r"(?:https?:)?//(?!www\.w3\.org/2000/svg)[a-z]")


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    """The web page behind the access guard, on a free port."""
    with HttpServer(
        AccessGuard(Starlette(routes=page_routes()), token=Token(SECRET), local=True), address()
    ) as running:
        yield running


def address() -> Address:
    return Address("127.0.0.1", 0)


def get(server: HttpServer, path: str, **headers: str) -> tuple[HTTPResponse, bytes]:
    """Return the answer and its body."""
    connection = HTTPConnection(server.address.host, server.address.port, timeout=HANG_S)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", path, headers={"authorization": f"Bearer {SECRET}"} | names)
    try:
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


class Reader(HTMLParser):
    """Tags with their attributes, and the text inside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inline = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in {"script", "style"}:
            self.inline += data.strip()


@pytest.mark.parametrize("name", ALL_PAGES)
def test_a_page_has_nothing_inline_and_names_only_files_that_exist(server: HttpServer, name: str) -> None:
    """The content security policy forbids inline code, and no other server has the files."""
    read = Reader(page_html(name).decode())
    assert read.inline == ""
    assert not [tag for tag, attributes in read.tags if tag == "style" or attributes.keys() & {"style", "onclick"}]
    wanted = {path for _, attributes in read.tags for key in ("src", "href") if (path := attributes.get(key))}
    assert wanted
    for path in wanted:
        if path.startswith("/assets/"):
            assert get(server, path)[0].status == 200, path
        else:
            assert path.startswith(("/", "#", "data:")), path


@pytest.mark.parametrize("path", sorted(PAGES))
def test_pages_share_their_head_and_the_choice_of_colours(server: HttpServer, path: str) -> None:
    """Both are in one file for all pages; a page is served with them, and begins with its character set."""
    answer, body = get(server, path)
    assert (answer.status, answer.headers["cache-control"]) == (200, "private, no-cache")
    assert b"<!-- part" not in body
    assert body.index(b'<meta charset="utf-8">') < body.index(b"<title>") < 1024
    for part in ("head", "theme"):
        shared = (PAGE / f"part_{part}.html").read_bytes()
        assert body.count(shared) == 1
        assert shared not in (PAGE / PAGES[path]).read_bytes()


@pytest.mark.parametrize("file", sorted(PAGE.glob("*.js")), ids=lambda file: file.name)
def test_a_script_needs_only_our_files(file: Path) -> None:
    """Imports name files in its folder; there is no URL of another server, and no markup made from text."""
    text = file.read_text()
    imports = re.findall(r'from "(.*?)";', text)
    assert all((PAGE / name).is_file() and name.startswith("./") for name in imports)
    assert not ELSEWHERE.search(re.sub(r"(?m)^\s*//.*$|(?<=[;{}])\s*//.*$", "", text))
    assert not re.search(r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval)\b", text)


def test_answers_have_the_type_that_browsers_require(server: HttpServer) -> None:
    """With nosniff, browsers do not run a script of another type."""
    for path, kind in (("/", "text/html"), ("/why?url=x", "text/html"),
                       ("/group?url=x", "text/html"), ("/assets/main.js", "text/javascript"),
                       ("/assets/app.css", "text/css"), ("/favicon.ico", "image/svg+xml"),
                       (f"/assets/{CHARTS}", "text/javascript")):  # fmt: skip
        answer, _ = get(server, path)
        assert (answer.status, answer.headers.get_content_type()) == (200, kind), path


def test_a_cached_file_is_not_sent_again(server: HttpServer) -> None:
    """A browser may cache files but must revalidate them; long ones are compressed."""
    answer, body = get(server, f"/assets/{CHARTS}", accept_encoding="gzip")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["cache-control"] == "private, no-cache"
    assert len(body) < 2_000_000
    assert len(gzip.decompress(body)) > 3_000_000
    again, nothing = get(server, f"/assets/{CHARTS}", if_none_match=answer.headers["etag"])
    assert (again.status, nothing) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/assets/nothing.js", "/assets/../page_routes.py", "/assets/%2e%2e/access_guard.py", "/assets/"]
)
def test_paths_cannot_leave_the_folder(server: HttpServer, path: str) -> None:
    """A path outside the folder is not found."""
    assert get(server, path)[0].status == 404


def test_a_person_without_the_token_is_asked_for_it(server: HttpServer) -> None:
    """A browser gets a form and none of the page's files; a program gets one line of JSON."""
    answer, body = get(server, "/", authorization="", accept="text/html,*/*")
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert b'name="token"' in body
    answer, body = get(server, "/api/stats", authorization="", accept="application/json")
    assert (answer.status, answer.headers.get_content_type()) == (401, "application/json")
    assert get(server, "/assets/app.css", authorization="")[0].status == 401
