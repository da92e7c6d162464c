"""A store that goes on where another one ended, without a copy of its pages and without changing it.

    link_store(source, manifest, folder, label, sequence, tail)
    store = PageStore.open(folder, label)        # has the rows of the source, and takes new ones

The files of the source are not copied: symbolic links in the new folder lead to them, and a `BlockFile` never writes
through a link. What a store writes anew at each commit is copied: the bitmap of live rows, and what a commit has beside
the rows. The next row begins a segment, so that nothing is appended to files of
the source. A compaction writes the rows that are left of such a segment into files of its own, as of any other.

The source may erase rows, and compact what is left of its segments. Whoever has the new store open reads zeros then
(`block_file`); whoever opens it lets it `follow_sources` first: what is dead in the source is dead here.

Both stores have one identity, which the checksums of the files contain; the label tells them apart.
"""

import shutil
from pathlib import Path

import msgspec
import numpy as np
import xxhash

from dedup_service.runtime.store.errors import StoreDamagedError, translated_os_errors
from dedup_service.runtime.store.live_rows import LiveRows, live_path, read_live, write_live
from dedup_service.runtime.store.manifest import (
    MANIFEST,
    Manifest,
    SegmentLabel,
    StoreLabel,
    read_manifest,
    write_checked,
)
from dedup_service.runtime.store.store_files import named_paths, segment_paths
from dedup_service.runtime.store.whole_file import extra_path


def link_store(source: Path, manifest: Manifest, folder: Path, label: StoreLabel, sequence: int, tail: str) -> None:
    """Make a store in `folder`, which is created, of the one in `source`, as `manifest` says.

    label, sequence, tail: of the log that the new one belongs to, and of its record up to which it is.
    StoreDamagedError if a file is missing; StoreFullError if `folder` cannot be written.
    """
    with translated_os_errors(folder):
        folder.mkdir(parents=True)
    copied = set() if manifest.live is None else {live_path(source, manifest.live.number)}
    copied |= set() if manifest.extra is None else {extra_path(source, manifest.extra.number)}
    for path in sorted(named_paths(source, manifest)):
        if not path.exists():
            if path.suffix == ".sums":
                continue
            raise StoreDamagedError(f"{path} is missing")
        with translated_os_errors(folder):
            if path in copied:
                shutil.copyfile(path, folder / path.name)
            else:
                (folder / path.name).symlink_to(path.resolve())
    rows = manifest.segment_rows
    following = msgspec.structs.replace(
        manifest, label=label, sequence=sequence, tail=tail, next_row=-(-manifest.next_row // rows) * rows
    )
    write_checked(folder / MANIFEST, following)


def link_again(folder: Path, source: Path) -> None:
    """Let the links in `folder`, if it is there, lead to the files of those names in `source`, wherever they led to."""
    with translated_os_errors(folder):
        for path in folder.iterdir() if folder.exists() else ():
            target = (source / path.name).resolve()
            if path.is_symlink() and target != path.readlink() and (target.exists() or not path.exists()):
                _replace_link(path, target)


def follow_sources(folder: Path) -> None:
    """Let the store in `folder`, if it is there, have the segments that it links to as their own stores have them now.

    Raises as `followed`; StoreFullError if `folder` cannot be written.
    """
    if not (folder / MANIFEST).exists():
        return
    manifest = read_manifest(folder)
    before = read_live(folder, manifest.segment_rows, manifest.live)
    segments, live, homes = followed(folder, manifest)
    if manifest.live is None or (segments == manifest.segments and not (before.bits != live.bits).any()):
        return
    stems = {label.stem for label in manifest.segments}
    for label in segments:
        for path in sorted(segment_paths(homes[label.number], label)) if label.stem not in stems else ():
            _replace_link(folder / path.name, path)
    manifest.segments = segments
    manifest.live = write_live(folder, manifest.live.number + 1, live.first, live.bits)
    write_checked(folder / MANIFEST, manifest)


def followed(folder: Path, manifest: Manifest) -> tuple[list[SegmentLabel], LiveRows, dict[int, Path]]:
    """Return segments and live rows as the stores that `folder` links to have them now, and in which folders they are.

    Raises as `read_manifest` and `read_live`.
    """
    sources, homes = dict[Path, tuple[Manifest, LiveRows]](), dict[int, Path]()
    live, size = read_live(folder, manifest.segment_rows, manifest.live), manifest.segment_rows // 8
    segments: list[SegmentLabel] = []
    for label in manifest.segments:
        rows = folder / f"{label.stem}.rows"
        home = rows.resolve().parent
        if rows.is_symlink() and home not in sources and (home / MANIFEST).exists():
            source = read_manifest(home)
            sources[home] = source, read_live(home, source.segment_rows, source.live)
        if home not in sources or sources[home][0].identity != manifest.identity:
            segments.append(label)
            continue
        source, there = sources[home]
        now = next((one for one in source.segments if one.number == label.number), None)
        kept = np.uint8(0) if now is None else np.packbits(there.segment(label.number), bitorder="little")
        live.bits[(label.number - live.first) * size :][:size] &= kept
        if now is not None:
            segments.append(now)
            homes[now.number] = home
    return segments, live, homes


def _replace_link(path: Path, target: Path) -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(path)


def manifest_digest(folder: Path) -> str:
    """Return a digest of the manifest in `folder`: another commit has another one. StoreDamagedError without one."""
    try:
        return xxhash.xxh3_128_hexdigest((folder / MANIFEST).read_bytes())
    except OSError as error:
        raise StoreDamagedError(f"{folder / MANIFEST} cannot be read: {error}") from error
