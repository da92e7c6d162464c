"""Worker processes work without preparation by the main program."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from dedup_service.runtime.workers.worker_process import NICENESS, behave_as_worker, worker_context
from tests.hangs import HANG_S, wait_until

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from concurrent.futures import ProcessPoolExecutor
from dedup_service.runtime.workers.worker_process import behave_as_worker, worker_context

print("started", flush=True)
pool = ProcessPoolExecutor(1, mp_context=worker_context(), initializer=behave_as_worker)
print(pool.submit(__import__("os").getpid).result(), flush=True)
if "wait" in sys.argv:
    sys.stdin.read()
pool.shutdown()
"""


def command(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    script = tmp_path / "unguarded.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, str(script), *arguments],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_script_without_a_main_guard_is_not_started_again(tmp_path: Path) -> None:
    """Scripts that run a crawl at the top level are common."""
    with command(tmp_path) as process:
        out, _ = process.communicate(timeout=HANG_S)
    assert (process.returncode, out.count("started")) == (0, 1)


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    """A SIGKILL of the parent leaves no workers."""
    with command(tmp_path, "wait") as process:
        assert process.stdout is not None
        process.stdout.readline()
        worker = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{worker}").exists() or "Z" in Path(f"/proc/{worker}/stat").read_text())


def test_workers_ignore_ctrl_c_and_have_a_lower_priority() -> None:
    """The event loop of the parent has precedence."""
    with ProcessPoolExecutor(1, mp_context=worker_context(), initializer=behave_as_worker) as pool:
        niceness = pool.submit(os.nice, 0).result()
        pool.submit(os.kill, pool.submit(os.getpid).result(), signal.SIGINT).result()
        assert pool.submit(len, "alive").result() == 5
    assert niceness == min(19, os.nice(0) + NICENESS)
