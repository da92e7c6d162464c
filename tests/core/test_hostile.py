"""Work and memory on hostile pages grow no faster than the page, from its HTML to its evidence."""

import json
import subprocess
import sys
import time

import pytest

from dedup_service._native import fold
from dedup_service.core.errors import RecordError
from dedup_service.core.extraction import Extraction, extract, to_page
from dedup_service.core.page import Page
from dedup_service.core.url import page_addresses
from dedup_service.runtime.resources import build_fingerprinter
from dedup_service.runtime.workers.preparation import get_ready
from tests.core.hostile import SENTENCE, UNITS, Unit

SIZES = {"html": 20_000, "json": 20_000, "text": 5_000, "url": 8_000}
GROWTH = 4
ENOUGH_S = 0.3
"""Processor time that is too little to compare; quadratic work on these sizes takes seconds."""
ADDRESS = "http://a.test/"
MAX_MARKS = 30


@pytest.fixture(autouse=True, scope="module")
def _warm() -> None:
    """Load what the first page would wait for."""
    get_ready(None)
    for encoding in ("utf-8", "gbk"):
        prepare(extract(f"<p>{SENTENCE * 10}图书馆</p>".encode(encoding)))


def prepare(extraction: Extraction) -> None:
    build_fingerprinter().prepare(to_page(extraction, ADDRESS))


def work(unit: Unit, size: int) -> float:
    """Return the processor seconds of the whole path of a page, or of an address, of about that size."""
    data = unit.make(size)
    started = time.process_time()
    if unit.kind == "url":
        assert isinstance(data, str)
        for url, link in ((data, None), (data[:8192], None), (ADDRESS, data)):
            try:
                page_addresses(url, link)
            except RecordError:
                continue
    elif unit.kind == "text":
        assert isinstance(data, str)
        build_fingerprinter().prepare(Page(url=ADDRESS, canonical_url=ADDRESS, id="", title="Pier", text=data))
    elif unit.kind == "json":
        prepare(extract(f'<title>Pier</title><script type="application/ld+json">{data}</script><p>x'))
    else:
        prepare(extract(data))
    return time.process_time() - started


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_work_grows_no_faster_than_the_page(unit: Unit) -> None:
    """Four times as much of any hostile unit takes at most twice as long for each character."""
    large = work(unit, GROWTH * SIZES[unit.kind])
    if large > ENOUGH_S:
        large = min(large, work(unit, GROWTH * SIZES[unit.kind]))  # the first time may have compiled or loaded a loop
        small = work(unit, SIZES[unit.kind])
        assert large <= 2 * GROWTH * small + ENOUGH_S, (small, large)


def extraction_of(html: str, limit_s: float) -> Extraction:
    started = time.process_time()
    extraction = extract(html)
    assert time.process_time() - started < limit_s
    return extraction


def test_80_000_empty_elements_between_words_take_linear_time() -> None:
    """Removing 80,000 empty elements joins the words around them once: 1.2 MB took over 90 s."""
    extraction = extraction_of(f"<html><body>{'<div></div>word' * 80_000}", 15)
    assert extraction.text == "word" * 80_000


def test_inline_markup_between_words_takes_linear_time() -> None:
    """Unwrapping 200,000 inline elements joins the words around them once: 2.2 MB took a minute and more."""
    extraction = extraction_of(f"<html><body>{'<b></b>word' * 200_000}", 15)
    assert extraction.text == "word" * 200_000


def test_page_of_many_links_takes_linear_time() -> None:
    """Unwrapping 200,000 links of a page of links joins the words around them once."""
    page = f"<html><body><div>{'<a href=/x>one of its pages</a> new ' * 200_000}"
    assert extraction_of(page, 15).text.startswith("one of its pages new one")


def test_menus_with_pictures_take_linear_time() -> None:
    """Elements to remove inside others to remove are collected in one pass: 2 MB took a minute and more."""
    extraction = extraction_of(f"<html><body>{'<nav><svg></svg></nav>word' * 100_000}", 15)
    assert extraction.text == "word" * 100_000


def test_elements_that_trafilatura_removes_take_linear_time() -> None:
    """9,000 elements between 8 MB of text are not given to trafilatura, which would copy the text for each."""
    extraction = extraction_of(f"<html><body>{(SENTENCE * 10 + '<video>x</video>') * 9_000}", 20)
    assert extraction.text.startswith(SENTENCE.strip())
    assert len(extraction.text) > 9_000 * 10 * len(SENTENCE)


def test_160_000_combining_marks_are_folded_in_linear_time() -> None:
    """Of marks in a row 30 stay; sorting 160,000 took 26 s. Removing joiners does not make a longer run."""
    started = time.process_time()
    assert fold("\u0315\u0300" * 80_000) == fold("\u0315\u0300" * (MAX_MARKS // 2))
    assert len(fold(("\u0315\u0300" * 10 + "\u200d") * 4_000)) <= MAX_MARKS
    assert len(fold("\u0f73" * 80_000)) <= 2 * MAX_MARKS
    assert time.process_time() - started < 3


def test_marks_up_to_the_limit_are_kept() -> None:
    """A letter with 30 marks keeps them, in canonical order."""
    assert len(fold("x" + "\u0315\u0323" * (MAX_MARKS // 2))) == 1 + MAX_MARKS


NESTED_TAG_LINKS = f"""
import json, resource, time
from dedup_service.core.extraction import extract, warm_up
warm_up()
extract("<p>{SENTENCE}")
page = "<html><body>" + "<a rel=tag href=/t><div>" * 120 + {SENTENCE!r} * 100_000
before = resource.getrusage(resource.RUSAGE_SELF)
tags = extract(page).tags
after = resource.getrusage(resource.RUSAGE_SELF)
grown = (after.ru_maxrss - before.ru_maxrss) * 1024 / len(page)
print(json.dumps([len(tags), max(map(len, tags)), after.ru_utime - before.ru_utime, grown]))
"""


def test_120_nested_tag_links_around_9_mb_take_linear_time_and_memory() -> None:
    """The text of nested tag links is read once: 9 MB took 60 s and 1 GB, 120 times the page."""
    ended = subprocess.run([sys.executable, "-c", NESTED_TAG_LINKS], capture_output=True, text=True, check=True)
    count, longest, seconds, grown = json.loads(ended.stdout)
    assert (count, longest) == (1, 200)
    assert seconds < 20
    assert grown < 40


def test_a_long_text_is_segmented_in_parts() -> None:
    """Segments of a long text are the same as of its lines."""
    line = "图书馆昨日宣布，从下月起延长周末开放时间。\n"
    page = Page(url=ADDRESS, canonical_url=ADDRESS, id="", text=line * 20_000)
    words = build_fingerprinter().words(page)
    assert sorted(words) == sorted(build_fingerprinter().words(Page(url="", canonical_url="", id="", text=line * 2)))


def test_letters_of_flags_are_cut_in_linear_time() -> None:
    """A long run of letters of flags is one piece; the words around it are the same as without it."""
    flags = "\U0001f1e9\U0001f1ea" * 20_000
    started = time.process_time()
    words = build_fingerprinter().words(Page(url="", canonical_url="", id="", text=f"harbour {flags} pier"))
    assert words == ["harbour", "pier"]
    assert time.process_time() - started < 3
