"""The real extraction, with the signature that records expect."""

import pytest

from dedup_service.core.extraction import Extraction, extract
from dedup_service.runtime.readers.record import Extract


@pytest.fixture
def extract_html() -> Extract:
    """Return a function that extracts HTML with a declared encoding or None."""

    def call(html: bytes | str, declared_encoding: str | None) -> Extraction:
        return extract(html, declared_encoding=declared_encoding)

    return call
