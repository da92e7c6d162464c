"""The cache of extractions: the same results, computed once, within bounds."""

from dedup_service.runtime.workers.extraction_cache import ExtractionCache

PAGE = "<html><head><title>码头</title></head><body><p>旧码头将在冬天之前重建，渔民暂用浮动栈桥。</p></body></html>"


def test_identical_bodies_are_extracted_once() -> None:
    """The second call returns the same value."""
    cache = ExtractionCache()
    assert cache.extract(PAGE) is cache.extract(PAGE)
    assert (cache.hits, cache.misses, len(cache)) == (1, 1, 1)


def test_the_encoding_is_part_of_the_key() -> None:
    """The same bytes with another declaration are another page."""
    cache = ExtractionCache()
    data = "<p>碼頭將在冬天之前重建</p>".encode("big5")
    assert cache.extract(data, declared_encoding="big5").text != cache.extract(data, declared_encoding="gbk").text
    assert cache.extract("<p>码头</p>").text == "码头"
    assert cache.hits == 0


def test_bounded_by_text() -> None:
    """Texts that exceed the bound together are not all kept; a single longer one is not kept at all."""
    cache = ExtractionCache(max_text_chars=50)
    for letter in "abc":
        cache.extract(f"<p>{letter * 20}</p>")
    assert len(cache) == 2
    cache.extract(f"<p>{'d' * 51}</p>")
    assert len(cache) == 0
