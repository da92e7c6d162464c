"""Whether numeric loops have to be compiled first, which takes a minute or two on first use.

Nothing else shows why a first run does nothing for so long. Worker processes compile, too, and say nothing, so the
files of the cache are counted before the work begins, here and not in `core`, which does no I/O. Not all of them are
ever there: a run calls some kernels only. After an update some are outdated, which is not seen; few of them take long.
"""

from collections.abc import Sequence
from pathlib import Path

import dedup_service.core.fingerprinter  # noqa: F401 - so that the kernels of every run are defined
from dedup_service.core.kernels import cache_files

COMPILING = "compiling, a minute or two on first use; cached afterwards"
_NOT_KEPT = "compiling, a minute or two at each start: no folder for the cache is writable; set NUMBA_CACHE_DIR to one"

_USUAL_SHARE = 0.4
"""Of the kernels' files that are there after any run; `filter` on 60 texts leaves 48 of 52."""


def compile_notice(files: Sequence[str | None] | None = None) -> str | None:
    """Return what to tell people before the work begins; None if most machine code is there.

    files: as `cache_files` returns, which is the default.
    """
    files = cache_files() if files is None else files
    if files and all(file is None for file in files):
        return _NOT_KEPT
    there = sum(file is not None and Path(file).exists() for file in files)
    return COMPILING if there < _USUAL_SHARE * len(files) else None
