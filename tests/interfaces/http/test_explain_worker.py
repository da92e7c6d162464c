"""The thread of the explanations ends in time, whatever question is in progress."""

import asyncio
import subprocess
import sys
import threading

from dedup_service.interfaces.http.explain_routes import ExplainWorker
from tests.hangs import HANG_S

AT_EXIT = """
import time
from dedup_service.interfaces.http.explain_routes import ExplainBackend
backend = ExplainBackend(lambda: time.sleep(3600), lambda: None)
import asyncio, threading
threading.Thread(target=asyncio.run, args=(backend.worker.answer(lambda: backend.explainer),), daemon=True).start()
time.sleep(1)
if {close}:
    backend.close(0.1)
print("done")
"""


def test_questions_are_answered_in_order_and_closing_runs_the_last_act() -> None:
    """Both happen in the thread; what is asked after the end is refused."""
    ran: list[str] = []
    worker = ExplainWorker(lambda: ran.append(threading.current_thread().name))

    async def ask() -> list[bytes]:
        answers = await asyncio.gather(*(worker.answer(lambda at=at: at) for at in range(4)))  # type: ignore[misc]
        return [bytes(answer.body) for answer in answers]

    assert asyncio.run(ask()) == [b"0", b"1", b"2", b"3"]
    worker.close()
    assert ran == ["twinsieve-why"]
    assert asyncio.run(worker.answer(lambda: 1)).status_code == 503


def test_a_question_that_does_not_end_delays_no_stop() -> None:
    """Those behind it are refused; what it used is closed once it has ended."""
    begun, release, closed = threading.Event(), threading.Event(), threading.Event()
    worker = ExplainWorker(closed.set)

    def wait() -> int:
        begun.set()
        assert release.wait(HANG_S)
        return 1

    async def ask() -> list[int]:
        questions = [asyncio.create_task(worker.answer(wait)), asyncio.create_task(worker.answer(lambda: 2))]
        assert await asyncio.to_thread(begun.wait, 30)
        await asyncio.to_thread(worker.close, 0.0)
        assert not closed.is_set()
        release.set()
        return [(await question).status_code for question in questions]

    assert asyncio.run(ask()) == [200, 503]
    assert closed.wait(HANG_S)


def test_an_exit_waits_for_no_question() -> None:
    """The interpreter ends, whether the backend was closed or not."""
    for close in (True, False):
        program = [sys.executable, "-c", AT_EXIT.format(close=close)]
        ended = subprocess.run(program, capture_output=True, text=True, timeout=HANG_S, check=True)
        assert ended.stdout == "done\n"
