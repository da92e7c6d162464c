"""The cache of extractions: the same results, computed once, within bounds."""

from dedup_service.runtime.workers.extraction_cache import ExtractionCache

PAGE = "<html><head><title>码头</title></head><body><p>旧码头将在冬天之前重建，渔民暂用浮动栈桥。</p></body></html>"


def test_identical_bodies_are_extracted_once() -> None:
    """The second call returns the same value."""
    cache = ExtractionCache()
    assert cache.extract(PAGE) is cache.extract(PAGE)


def test_the_encoding_is_part_of_the_key() -> None:
    """The same bytes with another declaration are another page."""
    cache = ExtractionCache()
    data = "<p>碼頭將在冬天之前重建</p>".encode("big5")
    assert cache.extract(data, declared_encoding="big5").text != cache.extract(data, declared_encoding="gbk").text
    assert cache.extract("<p>码头</p>").text == "码头"


def test_bounded_by_text() -> None:
    """Texts that exceed the bound together are not all kept; a single longer one is not kept at all."""
    cache = ExtractionCache(max_text_chars=50)
    pages = [f"<p>{letter * 20}</p>" for letter in "abc"]
    kept = [cache.extract(page) for page in pages]
    assert cache.extract(pages[2]) is kept[2]
    assert cache.extract(pages[0]) is not kept[0]
    long = f"<p>{'d' * 51}</p>"
    assert cache.extract(long) is not cache.extract(long)
