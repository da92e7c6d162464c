"""A page's record as a row of the log, and back.

Invariant: the verdict read back equals the one that was handed out, field by field, whatever is in its
strings: a lone surrogate, which SQLite's UTF-8 cannot hold, is stored as bytes.
"""

from dataclasses import dataclass
from typing import Any

from dedup_service.core.decision import Decision
from dedup_service.core.entry_rows import flags_of, signed
from dedup_service.core.fingerprint import PreparedPage
from dedup_service.core.verdict import Distance, Verdict, VerdictKind

__all__ = ["INSERT_PAGE", "VERDICTS", "VERDICT_COLUMNS", "DecidedPage", "name_of", "page_row", "text_of", "verdict_of"]

_COLUMNS = (
    "sequence, record, id, url, canonical_url, title, verdict, repeats, "
    "distance_words, distance_body, score, reason, words, body, body_hash, url_hash, entry, evidence, removes, detail"
)
_VALUES = "?, " * _COLUMNS.count(",") + "?"
INSERT_PAGE = f"INSERT INTO log (kind, {_COLUMNS}) VALUES ('page', {_VALUES})"  # noqa: S608 - our own column names
VERDICT_COLUMNS = (
    "page.sequence, page.id, page.url, page.verdict, kept.id, kept.url, "
    "page.distance_words, page.distance_body, page.score, page.reason"
)
VERDICTS = "log AS page LEFT JOIN log AS kept ON kept.sequence = page.repeats"
"""What VERDICT_COLUMNS are columns of: a page, and the page that it repeats."""

Text = str | bytes | None


@dataclass(frozen=True, slots=True)
class DecidedPage:
    """A page with its decision and the digest of its delivery (None where the caller gave none)."""

    prepared: PreparedPage
    decision: Decision
    record: bytes | None


def page_row(decided: DecidedPage) -> tuple[Any, ...]:
    """Return the row of `decided`, in the order of INSERT_PAGE."""
    page, verdict, entry = decided.prepared.page, decided.decision.verdict, decided.decision.entry
    copy = decided.decision.copy
    fingerprint, url = decided.prepared.fingerprint, page.url
    return (
        verdict.sequence,
        decided.record,
        None if page.id == url else _stored(page.id),
        _stored(url),
        None if page.canonical_url == url else _stored(page.canonical_url),
        _stored(page.title),
        verdict.kind.value,
        decided.decision.of,
        verdict.distance.words,
        verdict.distance.body,
        verdict.score,
        verdict.reason,
        signed(fingerprint.words),
        signed(fingerprint.body),
        signed(decided.prepared.body_hash),
        None if entry is None else signed(entry.url_hash),
        None if entry is None else flags_of(entry),
        decided.prepared.evidence or None,
        decided.decision.replaces,
        None if copy is None else copy.pack(),
    )


def verdict_of(row: tuple[Any, ...], space_id: str) -> Verdict:
    """Return the verdict in a row of VERDICT_COLUMNS."""
    sequence, page_id, url, kind, of, of_url, words, body, score, reason = row
    own_id, own_url = name_of(page_id, url)
    of_id, of_page_url = (None, None) if of_url is None else name_of(of, of_url)
    return Verdict(
        sequence=sequence,
        id=own_id,
        url=own_url,
        kind=VerdictKind(kind),
        space=space_id,
        duplicate_of=of_id,
        duplicate_of_url=of_page_url,
        distance=Distance(words=words, body=body),
        score=score,
        reason=reason,
    )


def name_of(page_id: Text, url: Text) -> tuple[str, str]:
    """Return (id, url) as the caller gave them, from how they are stored."""
    known_url = text_of(url)
    return (known_url if page_id is None else text_of(page_id)), known_url


def _stored(text: str | None) -> Text:
    if text is None or text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def text_of(text: Text) -> str:
    """Return a text from how it is stored, "" for none."""
    return text.decode("utf-8", "surrogatepass") if isinstance(text, bytes) else text or ""
