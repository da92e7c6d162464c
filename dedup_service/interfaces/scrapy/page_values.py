"""Makes message values from what a spider yields: the JSON objects that `twinsieve filter` reads.

How: the fields of an item are taken as they are. A field that JSON cannot hold is left out. A field that
`filter` would refuse (`tags` as a string, `id` as a list) is moved under `item`, so that the page is not
refused and no data are lost. A null in a known field means "not given" and is left out.
Invariant: `filter` and the service can decode whatever `page_value` returns; their size limits still apply
(`core.size_limits`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from itemadapter import ItemAdapter

from dedup_service.core.text.encoding import decode_html, without_surrogates
from dedup_service.runtime.readers.jsonlines import PageJson
from dedup_service.runtime.readers.record import addresses_at

if TYPE_CHECKING:
    from scrapy.http import Response

    from dedup_service.core.page import Page

MOVED = "item"
KNOWN = {field.name: field.type for field in msgspec.structs.fields(PageJson)}
NOT_JSON = (TypeError, ValueError, OverflowError, RecursionError)  # UnicodeEncodeError is a ValueError

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(PageJson).decode


@dataclass(frozen=True, slots=True)
class PageValue:
    """A page ready to be sent. canonical_url: its own. left_out: names of fields that JSON cannot hold."""

    url: str
    canonical_url: str
    value: bytes
    left_out: tuple[str, ...] = ()


def is_page(item: Any) -> bool:
    """Whether an item, of any type, has a `url`, and `text` or `html`."""
    if not ItemAdapter.is_item(item):
        return False
    adapter = ItemAdapter(item)
    url, text, html = (adapter.get(name) for name in ("url", "text", "html"))
    return isinstance(url, str) and bool(url.strip()) and (isinstance(text, str) or isinstance(html, str | bytes))


def fields_of_item(item: Any) -> dict[str, Any]:
    """Return the fields of an item that is a page, with items in them converted, but for what contains itself."""
    fields = {name: _plain(value) for name, value in ItemAdapter(item).items()}
    if isinstance(fields.get("html"), bytes):
        fields["html"] = decode_html(fields["html"]).text
    return fields


def _plain(value: Any) -> Any:
    try:
        return ItemAdapter({MOVED: value}).asdict()[MOVED]
    except RecursionError:
        return value  # `page_value` leaves out what contains itself


def fields_of_page(page: "Page") -> dict[str, Any]:
    """Return the fields of an extracted page. `canonical_url` is the address that it claims, if there is one."""
    names = (name for name in KNOWN if name != "html")
    return {name: getattr(page, name) for name in names} | {"canonical_url": page.claimed_url or page.canonical_url}


def fields_of_response(response: "Response") -> dict[str, Any]:
    """Return the fields of a page as fetched; the service will extract it."""
    header = response.headers.get("Content-Type")
    html = decode_html(response.body, header.decode("latin-1") if header else None).text
    return {"url": response.url, "html": html}


def page_value(fields: Mapping[str, Any]) -> PageValue:
    """Return the value for a page whose `url` is a string, and whose `text` or `html` is one."""
    wanted = {name: value for name, value in fields.items() if value is not None or name not in KNOWN}
    left_out: tuple[str, ...] = ()
    try:
        value = _encode(wanted)
        line = _decode(value)
    except NOT_JSON:
        wanted, left_out = _repaired(wanted)
        value = _encode(wanted)
        line = _decode(value)
    return PageValue(line.url, addresses_at(line.url).canonical_url, value, left_out)


def _repaired(fields: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return fields that can be encoded and decoded, and the names of those that cannot be encoded at all."""
    plain: dict[str, Any] = {}
    left_out: list[str] = []
    for name, value in fields.items():
        try:
            text = without_surrogates(value) if isinstance(value, str) else value
            plain[without_surrogates(str(name))] = msgspec.json.decode(_encode(text))
        except NOT_JSON:
            left_out.append(str(name))
    moved = {name: value for name, value in plain.items() if name in KNOWN and not _has_type(value, KNOWN[name])}
    kept = {name: value for name, value in plain.items() if name not in moved}
    if moved:
        kept[MOVED] = {**kept[MOVED], **moved} if isinstance(kept.get(MOVED), dict) else moved
    return kept, tuple(left_out)


def _has_type(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True
