"""Records that go to a worker process, and what they do to it."""

import itertools
import os
from dataclasses import dataclass

from dedup_service.core.page import Page
from dedup_service.runtime.readers.jsonlines import JsonLine
from dedup_service.runtime.readers.record import Extract

PARENT = os.getpid()


def page_of(text: str) -> Page:
    """Return a page with this text."""
    return Page(url="https://a.example/r", canonical_url="https://a.example/r", id="r", text=text)


@dataclass(frozen=True)
class WorkerRecord:
    """A record that is no short text, so that a worker reads it; subclasses say what its page is."""

    number: int = 1
    raw: bytes = b""
    place: str = "here"
    identity: bytes = b"a record"
    parent: int = PARENT

    def text_page(self) -> Page | None:
        """Return None: it goes to a worker process."""
        return None

    def unread(self) -> Page:
        """Return the page without its text."""
        return page_of("")


class Killer(WorkerRecord):
    """A record on which a worker process dies."""

    def page(self, extract: Extract) -> Page:
        """End the process, unless it is the one that created this record."""
        if os.getpid() != self.parent:
            os._exit(1)
        return page_of("a text")


class EndlessLine(JsonLine):
    """A line on which native code computes indefinitely, in any process but the one that created it."""

    def __init__(self, number: int) -> None:
        super().__init__(number, b'{"url": "https://a.example/e", "text": "a text"}')

    def text_page(self) -> Page | None:
        """Return None: it goes to a worker process."""
        return None

    def __reduce__(self) -> tuple[object, ...]:
        return sum, (itertools.repeat(1),)
