"""Take-down: the bytes of a page become zeros on the disk, whatever happens meanwhile.

This is the only overwriting of committed bytes. A crash between the bytes and their checksums would look like
damage, so an intent with the spans and the checksums after the erasure is made durable first (`erasure.json`).
Opening a store completes an intent that it finds.
"""

from pathlib import Path
from typing import Any

import msgspec

from dedup_service.runtime.store.block_file import BLOCK_BYTES, ErasedBlocks, overwrite_durably, write_sums
from dedup_service.runtime.store.errors import translated_os_errors
from dedup_service.runtime.store.manifest import (
    INTENT,
    MANIFEST,
    FileLabel,
    Manifest,
    read_checked,
    sync_directory,
    write_checked,
)
from dedup_service.runtime.store.segment import Segment
from dedup_service.runtime.store.stored_rows import BYTE_FILES


class ErasedSpan(msgspec.Struct):
    """Bytes of `file` that become zeros. blocks: checksums afterwards, by block."""

    file: str
    start: int
    size: int
    blocks: dict[int, int]


class Erasure(msgspec.Struct):
    """What is to be erased. tails: checksums of last, partial blocks in the manifest, by file."""

    spans: list[ErasedSpan]
    tails: dict[str, int]

    def patch(self, manifest: Manifest) -> None:
        """Write the checksums of partial blocks into `manifest`."""
        for segment in manifest.segments:
            for name, label in segment.files.items():
                tail = self.tails.get(f"{segment.stem}.{name}")
                if tail is not None:
                    label.tail_sum = tail


def complete_erasure(folder: Path, manifest: Manifest) -> bool:
    """Complete the erasure that a crash interrupted in `folder`; return whether there was one.

    `manifest` is changed; the caller writes it, and calls `end_erasure`. Bytes behind the committed length are left
    to the caller, who cuts them off.
    """
    path = folder / INTENT
    if not path.exists():
        return False
    erasure = read_checked(path, Erasure)
    lengths = {
        f"{segment.stem}.{name}": label.length for segment in manifest.segments for name, label in segment.files.items()
    }
    for span in erasure.spans:
        length = lengths.get(span.file, 0)
        size = min(span.size, length - span.start)
        if size > 0:
            overwrite_durably(folder / span.file, bytes(size), span.start)
            full = {block: value for block, value in span.blocks.items() if block < length // BLOCK_BYTES}
            write_sums(folder / f"{span.file}.sums", full)
    erasure.patch(manifest)
    return True


def erase_row(folder: Path, manifest: Manifest, segment: Segment, row: Any) -> None:
    """Overwrite the evidence, names and text of a row of STORED_ROW with zeros, durably, and patch the last commit."""
    committed = {label.number: label.files for label in manifest.segments}.get(segment.number, {})
    erasure = Erasure([], {})
    for name in BYTE_FILES:
        file, start, size = segment.files[name], int(row[f"{name}_at"]), int(row[f"{name}_bytes"])
        if size and file.length:
            erasure.spans.append(ErasedSpan(file.path.name, start, size, file.erased_blocks(start, size)))
            tail = file.erased_tail(start, size, committed.get(name, FileLabel()).length)
            if tail is not None:
                erasure.tails[file.path.name] = tail
    write_checked(folder / INTENT, erasure)
    for span in erasure.spans:
        segment.files[span.file.rsplit(".", 1)[1]].erase(span.start, span.size, span.blocks)
    erasure.patch(manifest)
    write_checked(folder / MANIFEST, manifest)
    end_erasure(folder)


def blocks_being_erased(folder: Path) -> list[tuple[str, ErasedBlocks]]:
    """Return the names of files with the blocks that an erasure under way is changing."""
    path = folder / INTENT
    return [(span.file, span.blocks) for span in read_checked(path, Erasure).spans] if path.exists() else []


def end_erasure(folder: Path) -> None:
    """Remove the intent: the erasure is complete."""
    with translated_os_errors(folder / INTENT):
        (folder / INTENT).unlink(missing_ok=True)
        sync_directory(folder)
