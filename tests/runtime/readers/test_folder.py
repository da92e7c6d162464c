"""A folder of HTML files as records."""

import os
import socket
from pathlib import Path

import pytest

from dedup_service.core.errors import RecordError
from dedup_service.runtime.readers import folder
from dedup_service.runtime.readers.folder import read_folder
from dedup_service.runtime.readers.record import Extract, Mark

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


def test_the_same_bytes_under_another_path_are_another_delivery(tmp_path: Path) -> None:
    """A mirror may hold a page twice."""
    for name in ("1.html", "2.html"):
        (tmp_path / name).write_text(HTML.format(STORY))
    first, second = read_folder(tmp_path)
    assert first.identity != second.identity
    assert first.identity == next(read_folder(tmp_path)).identity


def test_a_file_that_cannot_be_read_is_a_bad_record(tmp_path: Path, extract_html: Extract) -> None:
    """So is one that disappears while the folder is read."""
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


def problems(path: Path, extract_html: Extract) -> dict[str, str]:
    """Relative path → why the record is bad; "" for a page."""
    given = {}
    for record in read_folder(path):
        try:
            given[record.relative] = "" if record.page(extract_html).problem is None else "a page"
        except RecordError as error:
            given[record.relative] = str(error).removeprefix("the file cannot be read: ")
    return given


def test_a_folder_with_a_link_to_a_file_outside(tmp_path: Path, extract_html: Extract) -> None:
    """Links to files and folders are counted and not followed; the folder itself may be one."""
    inside, outside = tmp_path / "site", tmp_path / "outside"
    for place in (inside, outside):
        place.mkdir()
        (place / "b.html").write_text(HTML.format(STORY))
    (inside / "passwd.html").symlink_to("/etc/passwd")
    (inside / "more").symlink_to(outside)
    (inside / "dangling.html").symlink_to("gone")
    link = "it is a link, and links are not followed"
    (tmp_path / "named").symlink_to(inside)
    for path in (inside, tmp_path / "named"):
        assert problems(path, extract_html) == {"b.html": "", "dangling.html": link, "more": link, "passwd.html": link}


def test_a_file_or_folder_replaced_by_a_link_after_it_was_listed(tmp_path: Path, extract_html: Extract) -> None:
    """Between listing and opening anything may happen to a name."""
    for name in ("a.html", "b.html", "c/d.html"):
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(HTML.format(STORY))
    records = read_folder(tmp_path / "site")
    next(records)
    (tmp_path / "site/b.html").unlink()
    (tmp_path / "site/b.html").symlink_to("/etc/passwd")
    (tmp_path / "site/c").rename(tmp_path / "c")
    (tmp_path / "site/c").symlink_to(tmp_path / "c")
    rest = list(records)
    assert [(record.relative, record.raw) for record in rest] == [("b.html", b""), ("c", b"")]
    for record in rest:
        with pytest.raises(RecordError):
            record.page(extract_html)


def test_what_is_no_regular_file_does_not_hang_the_reader(tmp_path: Path, extract_html: Extract) -> None:
    """A FIFO without a writer, also one that takes the place of a file, and a socket."""
    for name in ("a.html", "b.html"):
        (tmp_path / name).write_text(HTML.format(STORY))
    os.mkfifo(tmp_path / "fifo.html")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket.html"))
        records = read_folder(tmp_path)
        next(records)
        (tmp_path / "b.html").unlink()
        os.mkfifo(tmp_path / "b.html")
        rest = {record.relative: record.problem for record in records}
    assert rest == dict.fromkeys(["b.html", "fifo.html", "socket.html"], "it is not a regular file")


def test_folders_that_are_too_deep_are_reported(tmp_path: Path, extract_html: Extract) -> None:
    """Each level takes a descriptor, and a path can have thousands."""
    path = tmp_path / "site"
    deep = path.joinpath(*["d"] * (folder.MAX_DEPTH + 5))
    deep.mkdir(parents=True)
    (deep / "a.html").write_text(HTML.format(STORY))
    (path / "z.html").write_text(HTML.format(STORY))
    given = problems(path, extract_html)
    assert list(given.values()) == [f"it is more than {folder.MAX_DEPTH} folders deep", ""]


def test_files_that_are_skipped_by_their_number_are_those_that_are_read_without_it(tmp_path: Path) -> None:
    """Bad records count, other kinds of files do not; a file that nobody could read now is skipped as any other."""
    path = tmp_path / "site"
    for name in ("a.html", "a.txt", "b/c.htm", "b/d.html", "b/e/f.xhtml", "g.HTML", "h/i.css", "z.html"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(HTML.format(name))
    path.joinpath(*["d"] * (folder.MAX_DEPTH + 1)).mkdir(parents=True)
    (path / "b.txt").symlink_to("a.html")
    os.mkfifo(path / "y.html")

    def read(after: Mark | None) -> list[tuple[int, str, bytes, str | None]]:
        return [(one.number, one.relative, one.raw, one.problem) for one in read_folder(path, after=after)]

    records = read(None)
    assert len(records) == 9
    for at in range(11):
        assert read(Mark(at, at)) == records[at:]
