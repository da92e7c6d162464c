"""Makes message values from what a spider yields: the JSON objects that `twinsieve filter` reads.

How: the fields of an item are taken as they are. A field that JSON cannot hold is left out. A field that
`filter` would refuse (`tags` as a string, `id` as a list) is moved under `item`, so that the page is not
refused and no data are lost. A null in a known field means "not given" and is left out.
Invariant: `filter` and the service can decode whatever `page_value` returns; their size limits still apply
(`core.size_limits`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from itemadapter import ItemAdapter

from dedup_service.core.errors import RecordError
from dedup_service.core.text.encoding import decode_html, without_surrogates
from dedup_service.interfaces.scrapy.settings import ItemFields
from dedup_service.runtime.readers.columns import PageJson
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


def page_of_item(item: Any, names: ItemFields, response: "Response | None", addresses: Iterator[str]) -> PageValue:
    """Return the page that an item describes, of any type: its text, title and address, and what else `filter` reads.

    A relative address is one of the response.

    Args:
        item: What a spider has yielded.
        names: The item's fields of text, title and address.
        response: Where the item was found, if anywhere.
        addresses: Addresses of items without one; each is taken once, since two items are two pages.

    Raises:
        RecordError: The item has no text, or no address.
    """
    if not ItemAdapter.is_item(item):
        raise RecordError("it is no item")
    adapter = ItemAdapter(item)
    text = adapter.get(names.text)
    if not isinstance(text, str):
        given = f"holds {type(text).__name__}, not text" if names.text in adapter else "is missing"
        raise RecordError(f"its field `{names.text}` (TWINSIEVE_ITEM_TEXT) {given}")
    url = adapter.get(names.url or "url")
    if url is None and names.url is None:
        url = next(addresses, None)
    if not isinstance(url, str) or not url.strip():
        raise RecordError(
            f"its field `{names.url or 'url'}` has no address, by which several items of a response are told apart: "
            'TWINSIEVE_ITEM_TEXT = {"text": …, "url": …} names another field'
        )
    known = {name: adapter.get(name) for name in KNOWN if name != "html"}
    return page_value({**known, "url": _absolute(url, response), "title": adapter.get(names.title), "text": text})


def _absolute(url: str, response: "Response | None") -> str:
    try:
        return url if response is None else response.urljoin(url)
    except ValueError:  # no address of the Web; it names the item all the same
        return url


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
