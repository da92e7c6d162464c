"""A folder of HTML files as records."""

import os
from pathlib import Path

import pytest

from dedup_service.core.errors import RecordError
from dedup_service.runtime.readers import Extract, folder
from dedup_service.runtime.readers.folder import read_folder

HTML = "<html><body><article><p>{}</p></article></body></html>"
STORY = "The council opened the new bridge over the river on Monday morning after two years of work. " * 3


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Files with several extensions, in folders."""
    names = ("b.html", "a/z.htm", "a/a.HTML", "a/note.txt", "新闻/一.xhtml", "a b.html")
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(HTML.format(f"{STORY} {name}"))
    return tmp_path


def test_files_are_read_in_the_order_of_their_paths(site: Path) -> None:
    """Only files with HTML extensions are read; they are numbered in the same order every time."""
    records = list(read_folder(site))
    assert [record.relative for record in records] == ["a/a.HTML", "a/z.htm", "a b.html", "b.html", "新闻/一.xhtml"]
    assert [record.number for record in records] == [1, 2, 3, 4, 5]


def test_addresses_are_prefix_and_path(site: Path) -> None:
    """They do not depend on where the folder is; a prefix makes them Web addresses."""
    urls = [record.url for record in read_folder(site)]
    assert urls[2:] == ["file:///a%20b.html", "file:///b.html", "file:///%E6%96%B0%E9%97%BB/%E4%B8%80.xhtml"]
    assert next(read_folder(site, "https://")).url == "https://a/a.HTML"


def test_a_file_is_a_page(site: Path, extract_html: Extract) -> None:
    """Its text is extracted, its id is its path, its address is unchanged."""
    page = next(read_folder(site)).page(extract_html)
    assert (page.id, page.url, page.canonical_url) == ("a/a.HTML", "file:///a/a.HTML", "file:///a/a.HTML")
    assert "opened the new bridge" in page.text


def test_the_same_bytes_under_another_path_are_another_delivery(tmp_path: Path) -> None:
    """A mirror may hold a page twice."""
    for name in ("1.html", "2.html"):
        (tmp_path / name).write_text(HTML.format(STORY))
    first, second = read_folder(tmp_path)
    assert first.identity != second.identity
    assert first.identity == next(read_folder(tmp_path)).identity


def test_a_file_that_cannot_be_read_is_a_bad_record(tmp_path: Path, extract_html: Extract) -> None:
    """A dangling link is not a file; a file that disappears while the folder is read is reported."""
    (tmp_path / "dangling.html").symlink_to("gone")
    (tmp_path / "a.html").write_text(HTML.format(STORY))
    (tmp_path / "b.html").write_text(HTML.format(STORY))
    records = read_folder(tmp_path)
    next(records)
    (tmp_path / "b.html").unlink()
    gone = next(records)
    with pytest.raises(RecordError, match="No such file"):
        gone.page(extract_html)


def test_a_file_over_the_limit_is_a_page_with_that_reason(
    tmp_path: Path, extract_html: Extract, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read up to the limit, and passed on."""
    monkeypatch.setattr(folder, "MAX_PAGE_SIZE", 11 << 20)
    (tmp_path / "large.html").write_bytes(b"<p>" + b"x" * (12 << 20))
    (record,) = read_folder(tmp_path)
    assert len(record.raw) == (11 << 20) + 1
    assert "too large" in (record.page(extract_html).problem or "")


@pytest.mark.skipif(os.name != "posix", reason="names of bytes")
def test_a_name_that_is_not_utf_8_is_escaped(tmp_path: Path, extract_html: Extract) -> None:
    """Old mirrors have such names: the id has replacement characters, the address percent-encodes them."""
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xb0\xa1.html"))).write_text(HTML.format(STORY))
    page = next(read_folder(tmp_path)).page(extract_html)
    assert page.url == "file:///%B0%A1.html"
    page.id.encode()
