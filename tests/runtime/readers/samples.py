"""The same pages in every kind of input."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

SENTENCE = "The council opened the new bridge over the river on Monday morning. 本市新建的大桥周一上午正式通车。"
PAGES: list[dict[str, Any]] = [
    {"url": f"https://a.example/{number}", "id": f"p{number}", "title": f"Story {number}", "text": SENTENCE * number}
    for number in range(1, 10)
]
KINDS = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet", "warc", "warc.gz", "wet", "wet.gz", "folder")


def write_sample(folder: Path, kind: str, pages: list[dict[str, Any]] | None = None) -> Path:
    """Write pages as an input of a kind, with some records between them that are none; return its path."""
    pages, path = PAGES if pages is None else pages, folder / f"pages.{kind}"
    if kind == "folder":
        for number, page in enumerate(pages):
            file = path / ("b" if number % 3 else "b-1") / f"{number}.html"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(html_of(page))
            (file.parent / f"{number}.txt").write_text("not HTML")
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(pages), path, row_group_size=4)
    elif kind.startswith("jsonl"):
        lines = [json.dumps(page, ensure_ascii=False).encode() for page in pages]
        content = b"\n\n".join([*lines[:5], b"not JSON", *lines[5:]])
        path.write_bytes(_packed(kind, [content[:1000], content[1000:]]))
    else:
        records = [warc_record(page, text=kind.startswith("wet")) for page in pages]
        path.write_bytes(_packed(kind, [*records[:4], b"garbage\r\n\r\n", *records[4:]]))
    return path


def html_of(page: dict[str, Any]) -> bytes:
    """Return a page as HTML."""
    text = f"<h1>{page['title']}</h1><p>{page['text']}</p>"
    return f"<html><head><meta charset=utf-8></head><body><article>{text}</article></body></html>".encode()


def warc_record(page: dict[str, Any], *, text: bool = False) -> bytes:
    """Return a page as a response, or as a conversion with its text."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    block = page["text"].encode() if text else head + html_of(page)
    lines = [
        "WARC/1.0",
        "WARC-Type: " + ("conversion" if text else "response"),
        f"WARC-Record-ID: <urn:x:{page['id']}>",
        "WARC-Date: 2026-01-02T03:04:05Z",
        f"WARC-Target-URI: {page['url']}",
        "Content-Type: " + ("text/plain" if text else "application/http; msgtype=response"),
        f"Content-Length: {len(block)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + block + b"\r\n\r\n"


def _packed(kind: str, parts: list[bytes]) -> bytes:
    """Return the parts, each packed alone if the kind is packed."""
    if kind.endswith(".gz"):
        return b"".join(gzip.compress(part) for part in parts)
    if kind.endswith(".zst"):
        return b"".join(zstandard.ZstdCompressor().compress(part) for part in parts)
    return b"".join(parts)
