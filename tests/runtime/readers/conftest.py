"""The real extraction, in the shape in which records ask for it."""

import pytest

from dedup_service.core.extraction import Extraction, extract
from dedup_service.runtime.readers import Extract


@pytest.fixture
def extract_html() -> Extract:
    """Extract HTML with a declared encoding or none."""

    def call(html: bytes | str, declared_encoding: str | None) -> Extraction:
        return extract(html, declared_encoding=declared_encoding)

    return call
