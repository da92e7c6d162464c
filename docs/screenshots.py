"""Make the images of the dashboard in docs/images, from the demo in a real browser.

python -m docs.screenshots

Needs a font with Chinese characters (Debian: fonts-noto-cjk).
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from deploy.programs import MissingProgramError
from tests.integration.dashboard.browsing import BrowserPage, Demo, chromium

IMAGES = Path(__file__).with_name("images")
MAX_BYTES = 200_000
DESK, PHONE = (1280, 1000), (360, 760)


def main() -> int:
    """Run as a command; return the exit code."""
    if not subprocess.run(["fc-list", ":lang=zh"], capture_output=True, check=True).stdout:  # noqa: S607
        print("no font has Chinese characters: install one (Debian: fonts-noto-cjk), then try again", file=sys.stderr)
        return 1
    try:
        with chromium() as browser, tempfile.TemporaryDirectory() as folder, Demo.running(Path(folder)) as demo:
            demo.wait_for(lambda: "stays open until" in demo.output)
            take(browser, demo.url, "light", DESK, color_scheme="light")
            take(browser, demo.url, "dark", DESK, color_scheme="dark")
            take(browser, demo.url, "phone", PHONE, color_scheme="light", device_scale_factor=2)
            take(browser, demo.url, "why", DESK, why=True, color_scheme="light")
    except MissingProgramError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def take(browser: Browser, url: str, name: str, size: tuple[int, int], *, why: bool = False, **context: Any) -> None:
    """Take one image, of the dashboard or of the page that explains a verdict."""
    watched = BrowserPage(browser, url, size, **context)
    page = watched.page
    page.goto("/")
    expect(page.locator("#line")).to_have_text("connected")
    expect(page.locator("#rows tbody tr")).not_to_have_count(0)
    expect(page.locator("#chart-errors svg").first).to_be_visible()
    if why:
        explain(page)
    file = IMAGES / f"dashboard-{name}.png"
    file.write_bytes(page.screenshot(animations="disabled"))
    watched.close()
    size_bytes = file.stat().st_size
    print(f"{file.name}: {size_bytes:,} bytes")
    if size_bytes > MAX_BYTES:
        raise SystemExit(f"{file.name} has more than {MAX_BYTES:,} bytes: make the window smaller")


def explain(page: Page) -> None:
    """Open the explanation of a duplicate, and scroll to the rule."""
    row = page.locator("#rows tbody tr", has_text="nearly the same text", has=page.locator(".verdict.duplicate")).first
    row.get_by_role("link", name="Why").click()
    expect(page.locator("#features tbody tr")).not_to_have_count(0)
    page.locator("#rule").scroll_into_view_if_needed()
    page.evaluate("document.getElementById('rule').scrollIntoView()")


if __name__ == "__main__":
    sys.exit(main())
