"""Claim: the same pages give the same verdicts in whatever files they are, and however often a run is interrupted.

    python -m benchmarks.inputs same FILE [--interruptions 50]
    python -m benchmarks.inputs read [--pages 1000000] [--folder DIR]

`same` writes the pages of a file of JSON lines as lines (plain, gzip, zstd), Parquet and WET, and as HTML in lines,
Parquet, WARC and a folder; filters each of them from the disk and from a local S3 server; and compares all verdicts
with those of the lines, for texts and for HTML. Then it runs the texts, one after the other in all kinds of files, with
a state, kills or stops that run at random places (SIGKILL, SIGTERM and SIGINT in turn), runs it again until it
is done, and compares the outputs with those of a run that was left alone, byte for byte.

`read` writes generated texts of 700 letters as Parquet and as lines, and gives the pages a second and the most memory
(anonymous and shared, of the process alone) of `filter` over each, at a tenth of the pages and at all of them.
"""

import argparse
import gzip
import html
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from tests.crawls.texts import Writer
from tests.s3_server import put, running_s3

TEXT_KINDS = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet", "wet.gz")
HTML_KINDS = ("jsonl", "parquet", "warc.gz", "folder")
HOST = "stream.example"
COMPARED = ("id", "url", "verdict", "duplicate_of", "duplicate_of_url", "distance", "score", "reason", "sequence")
PART_ROWS = 10_000


def pages_of(path: Path) -> list[dict[str, str]]:
    """Return the pages with a text of a file, each at an address of its own, numbered in their order."""
    rows = (json.loads(line) for line in path.read_bytes().splitlines())
    kept = [row for row in rows if row.get("text")]
    return [
        {"id": f"{number:06}.html", "url": f"https://{HOST}/{number:06}.html", "text": row["text"]}
        for number, row in enumerate(kept)
    ]


def with_html(page: dict[str, str]) -> dict[str, str]:
    """Return a page with its text as HTML."""
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in page["text"].split("\n") if line.strip())
    body = f"<!doctype html><meta charset=utf-8><title>{page['id']}</title><article>{lines}</article>"
    return {"id": page["id"], "url": page["url"], "html": body}


def warc_record(page: dict[str, str]) -> bytes:
    """Return a page as a WARC record: a response, or the text of one."""
    kind, media, block = "conversion", "text/plain", page.get("text", "").encode()
    if "html" in page:
        kind, media = "response", "application/http; msgtype=response"
        block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + page["html"].encode()
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {page['id']}\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n"
        f"WARC-Target-URI: {page['url']}\r\nContent-Type: {media}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n", 1)


def write(folder: Path, kind: str, pages: Sequence[dict[str, str]]) -> Path:
    """Write pages as a file or folder of a kind."""
    path = folder / f"pages.{kind}"
    if kind == "folder":
        path = folder / HOST
        path.mkdir()
        for page in pages:
            (path / page["id"]).write_bytes(page["html"].encode())
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(list(pages)), path, row_group_size=2000)
    elif kind.startswith("jsonl"):
        lines = b"".join(json.dumps(page, ensure_ascii=False).encode() + b"\n" for page in pages)
        pack = {"gz": gzip.compress, "zst": zstandard.ZstdCompressor().compress}.get(kind.partition(".")[2], bytes)
        path.write_bytes(pack(lines))
    else:
        path.write_bytes(b"".join(map(warc_record, pages)))
    return path


def filtered(*arguments: str) -> list[str]:
    """Return the command of a run of `filter`."""
    return [sys.executable, "-m", "dedup_service.interfaces.cli", "filter", *arguments]


def verdicts_of(source: str, *, top: bool) -> list[tuple[Any, ...]]:
    """Return what is compared of the verdicts on an input, in its order. top: it is a folder whose name is a host."""
    prefix = ["--url-prefix", f"https://{HOST}/"] if top else []
    lines = subprocess.run(filtered(source, *prefix, "--quiet"), capture_output=True, check=True).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    return [tuple(json.dumps(row[key]) for key in COMPARED) for row in rows]


def upload(server: str, path: Path) -> str:
    """Put a file, or the files of a folder, into object storage; return its address."""
    for file in [path] if path.is_file() else sorted(path.iterdir()):
        put(f"{server}/crawl/{file.relative_to(path.parent.parent)}", file.read_bytes())
    return f"s3://crawl/{path.parent.name}/{path.name}"


def same(arguments: argparse.Namespace) -> int:
    """Compare; return the exit code."""
    texts = pages_of(arguments.file)[: arguments.pages]
    differ = 0
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name, running_s3(Path(name) / "s3.log") as server:
        folder = Path(name)
        os.environ |= {
            "AWS_ENDPOINT_URL": server,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "NO_PROXY": "127.0.0.1",
        }
        put(f"{server}/crawl")
        for what, kinds, pages in (
            ("text", TEXT_KINDS, texts),
            ("HTML", HTML_KINDS, [with_html(page) for page in texts]),
        ):
            (folder / what).mkdir()
            paths = [write(folder / what, kind, pages) for kind in kinds]
            expected = verdicts_of(str(paths[0]), top=False)
            copies = sum(row[2] == '"duplicate"' for row in expected)
            print(f"{what}: {len(expected):,} pages, {copies:,} duplicates", flush=True)
            for kind, path in zip(kinds, paths, strict=True):
                for source in (str(path), upload(server, path)):
                    found = verdicts_of(source, top=kind == "folder")
                    wrong = sum(one != other for one, other in zip(found, expected, strict=True))
                    differ += wrong
                    print(f"  {what} as {kind}, {'S3' if '://' in source else 'disk'}: {wrong} differ", flush=True)
        if arguments.interruptions:
            differ += interrupted(folder, [folder / "text" / f"pages.{kind}" for kind in TEXT_KINDS], arguments)
    return 0 if differ == 0 else 1


def interrupted(folder: Path, paths: Sequence[Path], arguments: argparse.Namespace) -> int:
    """Interrupt runs at random places; return the number of outputs that differ from those of one run."""

    def command(name: str) -> list[str]:
        files = ["-o", str(folder / f"{name}.jsonl"), "--kept", str(folder / f"{name}.kept.jsonl")]
        return filtered(*map(str, paths), *files, "--state", str(folder / f"{name}.state"), "--json")

    subprocess.run(command("whole"), capture_output=True, check=True)
    chosen, stops, went_on, differ = random.Random(arguments.seed), 0, 0, 0
    output, lines = folder / "parts.jsonl", sum(1 for _ in (folder / "whole.jsonl").open("rb"))
    while stops < arguments.interruptions:
        for name in ("parts.jsonl", "parts.kept.jsonl", "parts.state"):
            subprocess.run(["rm", "-rf", str(folder / name)], check=True)
        code: int | None = None
        while code != 0:
            before = output.stat().st_size if output.exists() else 0
            target = before + chosen.randint(1, max(1, (folder / "whole.jsonl").stat().st_size // 8))
            process = subprocess.Popen(command("parts"), stderr=subprocess.PIPE, text=True)
            while process.poll() is None and (output.stat().st_size if output.exists() else 0) < target:
                time.sleep(0.002)
            if process.poll() is None:
                process.send_signal((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)[stops % 3])
                stops += 1
            went_on += "going on behind" in process.communicate()[1]
            code = process.returncode
        for name in ("jsonl", "kept.jsonl"):
            differ += (folder / f"parts.{name}").read_bytes() != (folder / f"whole.{name}").read_bytes()
    print(f"{lines:,} pages in {len(paths)} files, {stops} interruptions, {went_on} went on: {differ} outputs differ")
    return differ


def texts(pages: int) -> Iterator[dict[str, str]]:
    """Yield generated pages."""
    writer = Writer(random.Random(7))
    for number in range(pages):
        url = f"https://site{number % 1000:06}.example/{number:09}"
        yield {"id": f"page-{number:08}", "url": url, "title": writer.title(), "text": writer.text(700)}


def batched(pages: Iterator[dict[str, str]], size: int) -> Iterator[list[dict[str, str]]]:
    """Yield the pages in lists."""
    while part := list(islice(pages, size)):
        yield part


def read(arguments: argparse.Namespace) -> int:
    """Measure; return the exit code."""
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        for pages in (arguments.pages // 10, arguments.pages):
            table, lines = Path(name) / "pages.parquet", Path(name) / "pages.jsonl"
            schema = pa.schema([(key, pa.string()) for key in ("id", "url", "title", "text")])
            with pq.ParquetWriter(table, schema) as rows, lines.open("wb") as file:
                for part in batched(texts(pages), PART_ROWS):
                    rows.write_table(pa.Table.from_pylist(part, schema))
                    file.writelines(json.dumps(page, ensure_ascii=False).encode() + b"\n" for page in part)
            for path in (table, lines):
                print(json.dumps({"pages": pages, "file": path.suffix, **measured(path, Path(name))}), flush=True)
    return 0


def measured(path: Path, folder: Path) -> dict[str, float]:
    """Return seconds, pages a second and the most memory of a run over a file without a state, all pages kept."""
    began = time.monotonic()
    output = folder / "verdicts.jsonl"
    process = subprocess.Popen(filtered(str(path), "-o", str(output), "--quiet", "--keep", "1000"))
    most = 0
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status")
        found = (
            re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", status.read_text(), re.MULTILINE) if status.exists() else []
        )
        most = max(most, sum(map(int, found)))
        time.sleep(0.1)
    seconds = time.monotonic() - began
    pages = sum(1 for _ in output.open("rb"))
    return {"seconds": round(seconds, 1), "pages/s": round(pages / seconds), "MB at most": round(most / 1024)}


def main() -> int:
    """Run a part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("same")
    one.add_argument("file", type=Path)
    one.add_argument("--pages", type=int, default=None)
    one.add_argument("--interruptions", type=int, default=50)
    one.add_argument("--seed", type=int, default=1)
    one.set_defaults(run=same)
    other = parts.add_parser("read")
    other.add_argument("--pages", type=int, default=1_000_000)
    other.set_defaults(run=read)
    for each in (one, other):
        each.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    return int(arguments.run(arguments))


if __name__ == "__main__":
    sys.exit(main())
