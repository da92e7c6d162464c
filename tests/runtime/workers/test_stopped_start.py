"""A worker whose program stops while the worker starts."""

import multiprocessing
from multiprocessing import connection

import pytest

from dedup_service.runtime.workers.worker_process import Job, _serve
from tests.hangs import HANG_S


def ready() -> None:
    """Everything is there."""


def missing() -> None:
    """What a worker needs is not there."""
    raise FileNotFoundError("no dictionary")


@pytest.mark.parametrize("get_ready", [ready, missing])
def test_a_worker_that_is_not_wanted_any_more_ends_without_a_word(get_ready: object) -> None:
    """Its pipe is closed when it is ready; it ends as one that was used, and writes no traceback to standard error."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = connection.Pipe()
    ours.close()
    job = Job(work=len, get_ready=get_ready, timeout_s=1.0, memory_mb=100, preload=())  # type: ignore[arg-type]
    process = context.Process(target=_serve, args=(theirs, context.RawValue("i", 0), job))
    process.start()
    theirs.close()
    process.join(HANG_S)
    assert process.exitcode == 0
