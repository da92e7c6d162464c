"""Worker processes for HTML: every page comes back, whatever it does to its worker."""

import asyncio
import os
from collections.abc import Iterator

import pytest

from dedup_service.core.errors import RecordError
from dedup_service.core.page import Fingerprint
from dedup_service.runtime.workers.html_workers import Html, HtmlWorkers, prepare_html

BODY = "".join(f"<p>旧码头的第{n}根木桩在检查中被发现受损，市政部门决定在冬天之前完成更换。</p>" for n in range(12))


def page(number: int) -> Html:
    """A page whose article depends on `number`."""
    html = f"<html><head><title>码头{number}</title></head><body><h1>码头{number}</h1>{BODY}{number}</body></html>"
    return Html(html=html, url=f"http://example.com/{number}", id=str(number))


@pytest.fixture(scope="module")
def workers() -> Iterator[HtmlWorkers]:
    """Two workers, shared by tests that do not end them."""
    with HtmlWorkers(2) as two:
        yield two


@pytest.mark.slow
def test_same_pages_as_in_this_process(workers: HtmlWorkers) -> None:
    """Workers prepare pages exactly as a call in this process does."""
    pages = [page(number) for number in range(8)]
    futures = [workers.submit(each) for each in pages]
    assert [future.result() for future in futures] == [prepare_html(each) for each in pages]


@pytest.mark.slow
def test_on_an_event_loop(workers: HtmlWorkers) -> None:
    """A page can be awaited."""

    async def prepared() -> str:
        return (await asyncio.wrap_future(workers.submit(page(1)))).page.id

    assert asyncio.run(prepared()) == "1"


@pytest.mark.slow
def test_invalid_address(workers: HtmlWorkers) -> None:
    """A RecordError in a worker is raised by the future."""
    with pytest.raises(RecordError, match="nowhere"):
        workers.submit(Html(html="<p>码头</p>", url="nowhere")).result()


@pytest.mark.slow
def test_page_without_text(workers: HtmlWorkers) -> None:
    """It comes back with the reason."""
    prepared = workers.submit(Html(html=b"", url="http://example.com/empty")).result()
    assert (prepared.reason, prepared.fingerprint.body) == ("empty page", None)


class Killer(Html):
    """A page that ends the process which reads it."""

    def __reduce__(self) -> tuple[object, ...]:
        return os._exit, (1,)


@pytest.mark.slow
def test_page_that_kills_its_worker() -> None:
    """It comes back with the reason; the other pages are prepared."""
    with HtmlWorkers(2) as workers:
        pages = [page(1), Killer(html="<p>", url="http://example.com/killer", id="k"), page(2), page(3)]
        prepared = [future.result() for future in [workers.submit(each) for each in pages]]
        assert [each.page.id for each in prepared] == ["1", "k", "2", "3"]
        assert [each.reason is None for each in prepared] == [True, False, True, True]
        assert "died over this page" in (prepared[1].page.problem or "")
        assert workers.submit(page(4)).result().reason is None


@pytest.mark.slow
def test_extraction_only() -> None:
    """Without fingerprints, workers only extract."""
    with HtmlWorkers(1, fingerprints=False) as workers:
        extracted = workers.submit(page(1)).result()
    assert extracted.page == prepare_html(page(1)).page
    assert (extracted.fingerprint, extracted.body_hash, extracted.reason) == (Fingerprint(), None, None)
