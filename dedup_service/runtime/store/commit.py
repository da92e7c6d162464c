"""A commit that was begun: what its second half makes durable, and deletes once it is.

`PageStore.begin_commit` notes the state, and `PendingCommit.finish` waits for the disk: first for the appended parts of
files, then for the files that a commit writes as a whole, then for the manifest that names all of them. Only then it
deletes what no manifest names any more. Whatever fails before, the last commit is as it was.
"""

import threading
from collections.abc import Callable
from pathlib import Path

from dedup_service.runtime.store.block_file import UnsyncedPart
from dedup_service.runtime.store.errors import translated_os_errors
from dedup_service.runtime.store.live_rows import LiveRows, write_live
from dedup_service.runtime.store.manifest import MANIFEST, Manifest, sync_directory, write_checked
from dedup_service.runtime.store.whole_file import write_extra


class PendingCommit:
    """A commit whose content is fixed. `finish` may be called from any thread, and again.

    manifest: without what `finish` writes as a whole, the files of `number`: live rows, and extra or what it returns.
    parts: of files, not yet durable. dropped, obsolete: what goes once the manifest is durable. adopt: is told of it.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        number: int,
        live: LiveRows,
        parts: list[UnsyncedPart],
        dropped: list[Callable[[], None]],
        obsolete: set[Path],
        extra: bytes | Callable[[], bytes],
        adopt: Callable[[Manifest], None],
    ) -> None:
        self._folder = folder
        self._adopt = adopt
        self._manifest = manifest
        self._number = number
        self._live = live
        self._parts = parts
        self._dropped = dropped
        self._obsolete = obsolete
        self._extra = extra
        self._lock = threading.Lock()
        self._finished = False

    @property
    def is_finished(self) -> bool:
        """Whether it is durable, and no thread is at it any more."""
        return self._finished and not self._lock.locked()

    def finish(self) -> None:
        """Make it durable; StoreFullError leaves the commit before, and the store has to be opened again."""
        with self._lock:
            if self._finished:
                return
            for part in self._parts:
                part.sync()
            folder = self._folder
            extra = self._extra if isinstance(self._extra, bytes) else self._extra()
            self._manifest.extra = write_extra(folder, self._number, extra)
            self._manifest.live = write_live(folder, self._number, self._live.first, self._live.bits)
            sync_directory(folder)
            write_checked(folder / MANIFEST, self._manifest)
            self._adopt(self._manifest)
            self._finished, self._extra, self._live, self._parts = True, b"", LiveRows(64), []  # the memory of all
            with translated_os_errors(folder):
                for path in self._obsolete:
                    path.unlink(missing_ok=True)
                for drop in self._dropped:
                    drop()
