"""A browser page that records errors and requests, and the demo with its dashboard, for tests."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from deploy.programs import CHROMIUM, provide
from tests.hangs import HANG_S

T = TypeVar("T")

SERIOUS = {"serious", "critical"}
DESK, PHONE = (1280, 900), (360, 740)

expect.set_options(timeout=HANG_S * 1000)


class Demo:
    """A `twinsieve demo --dashboard` process. port: 0 for a free one. delay_s: between two pages."""

    def __init__(self, folder: Path, port: int = 0, delay_s: float = 0) -> None:
        self._log = folder / "demo.log"
        command = [sys.executable, "-m", "dedup_service.interfaces.cli", "demo"]
        command += ["--dashboard", str(port), "--delay", str(delay_s)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=clean_environment())

    @property
    def output(self) -> str:
        """The output so far."""
        return self._log.read_text()

    @property
    def url(self) -> str:
        """URL of the dashboard; waits until it is served."""
        return self.wait_for(lambda: re.search(r"Dashboard: (http://[\d.:]+)/", self.output))[1]

    def get(self, path: str) -> str:
        """Return the body at a path of the dashboard, "" while it does not answer."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=HANG_S) as response:
                return response.read().decode()
        except OSError:
            return ""

    def wait_for(self, condition: Callable[[], T | None]) -> T:
        """Wait for a true result of `condition` and return it; fail if the process ends."""
        deadline = time.monotonic() + HANG_S
        while not (result := condition()):
            assert self._process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.05)
        return result

    def end(self) -> int:
        """Send Ctrl-C and return the exit code."""
        self._process.send_signal(signal.SIGINT)
        try:
            return self._process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise

    @classmethod
    @contextmanager
    def running(cls, folder: Path, port: int = 0, delay_s: float = 0) -> Iterator["Demo"]:
        """Run the demo during the block."""
        demo = cls(folder, port, delay_s)
        try:
            yield demo
        finally:
            demo.end()


class BrowserPage:
    """A page of the browser. faults: its errors and dialogs. asked: all URLs that it requested."""

    def __init__(self, browser: Browser, url: str, size: tuple[int, int] = DESK, **context: Any) -> None:
        self._context = browser.new_context(viewport={"width": size[0], "height": size[1]}, base_url=url, **context)
        self._context.set_default_timeout(HANG_S * 1000)
        self.page: Page = self._context.new_page()
        self.faults: list[str] = []
        self.asked: set[str] = set()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.faults.append(f"{error}"))
        self.page.on("request", lambda request: self.asked.add(request.url))
        self.page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))

    def axe(self) -> list[str]:
        """Return the serious accessibility faults that axe-core finds."""
        violations = Axe().run(self.page).response["violations"]
        return [
            f"{fault['id']}: {[node['html'][:200] for node in fault['nodes']][:3]}"
            for fault in violations
            if fault["impact"] in SERIOUS
        ]

    def figure(self, name: str) -> int:
        """Return the number in a tile."""
        digits = re.sub(r"\D", "", self.page.locator(f"[data-figure={name}]").inner_text())
        return int(digits or 0)

    def until(self, expression: str, argument: object = None) -> None:
        """Wait until a JavaScript expression holds; Playwright's own wait needs `eval`, which the page forbids."""
        deadline = time.monotonic() + HANG_S
        while not self.page.evaluate(expression, argument):
            assert time.monotonic() < deadline, expression
            self.page.wait_for_timeout(50)

    def overflow(self) -> int:
        """Return the number of pixels by which the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))

    def broken_words(self) -> list[str]:
        """Return the words in cells of tables that are on two lines; addresses and titles, which are links, may be."""
        found = self.page.evaluate(
            """() => [...document.querySelectorAll("th, td")].flatMap((cell) => {
              const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
              for (let text = texts.nextNode(); text; text = texts.nextNode()) {
                if (text.parentElement.closest("a")) continue;
                for (const word of text.data.matchAll(/[\\p{Script=Latin}\\d]+/gu)) {
                  const range = document.createRange();
                  range.setStart(text, word.index);
                  range.setEnd(text, word.index + word[0].length);
                  const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
                  if (lines.size > 1) broken.push(word[0]);
                }
              }
              return broken;
            })"""
        )
        return [str(word) for word in found]

    def close(self) -> None:
        """Close the page."""
        self._context.close()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.faults.append(f"{message.type}: {message.text} {message.location}")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the distribution's Chromium; MissingProgramError says what to do if it is not installed."""
    (program,) = provide(CHROMIUM)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        try:
            yield browser
        finally:
            browser.close()


def clean_environment() -> dict[str, str]:
    """Return the environment without settings for twinsieve."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TWINSIEVE_")}
