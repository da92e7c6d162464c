"""The demo server answers as a news site does."""

from urllib.request import urlopen

from tests.hangs import HANG_S
from twinsieve_crawler.demo.server import serve
from twinsieve_crawler.demo.site import build_site

PAGES = build_site()


def get(url: str) -> tuple[str, bytes]:
    with urlopen(url, timeout=HANG_S) as response:
        return response.headers["Content-Type"], response.read()


def test_the_live_page_grows_between_visits() -> None:
    """It is longer from the second visit on."""
    with serve(PAGES) as server:
        sizes = [len(get(f"{server.url}daily/live/storm.html?visit={n}")[1]) for n in range(3)]
    assert sizes[0] < sizes[1] == sizes[2]


def test_the_sitemap_lists_stories_that_exist() -> None:
    """robots.txt names the sitemap."""
    with serve(PAGES) as server:
        robots = get(f"{server.url}robots.txt")[1].decode()
        sitemap = get(f"{server.url}sitemap.xml")[1].decode()
        locations = sitemap.split("<loc>")[1:]
        paths = {"/" + location.split("</loc>")[0].removeprefix(server.url) for location in locations}
    assert f"Sitemap: {server.url}sitemap.xml" in robots
    assert len(paths) > 40
    assert paths <= set(PAGES)
