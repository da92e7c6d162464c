"""Evidence and keys of made texts, however short: those that the crate makes of a page with this text."""

from collections.abc import Iterable
from dataclasses import MISSING, fields
from functools import cache

from dedup_service._native import PreparedText, Preparer, Segmenter
from dedup_service.core.features.weighting_schemes import scheme_named
from dedup_service.core.page import Page
from dedup_service.core.space import Space
from dedup_service.runtime.jieba_dictionary import cache_folder, jieba_folder


def prepared_text(text: str, title: str = "", metadata: Iterable[str] = ()) -> PreparedText:
    """Return what is made of a page; its words are not weighed. metadata: tags."""
    (made,) = _preparer().prepare([Page(url="", canonical_url="", id="", title=title, text=text, tags=tuple(metadata))])
    return made


def evidence_of(text: str, title: str = "", metadata: Iterable[str] = ()) -> bytes:
    """Return the evidence of a page."""
    return prepared_text(text, title, metadata).evidence


@cache
def _preparer() -> Preparer:
    tables = {field.name: "" for field in fields(Space) if field.default is MISSING and field.name != "scheme"}
    space = Space(scheme=scheme_named("tf"), **tables, min_letters=1)  # type: ignore[arg-type]
    return Preparer(space, Segmenter(jieba_folder(), cache_folder()), idf="", stop_words=(), markers=())
