"""Start a broker for the duration of a command, or until Ctrl-C.

python -m deploy.kafka                           prints the address and waits for Ctrl-C
python -m deploy.kafka --brokers 3 -- COMMAND…   runs COMMAND with TWINSIEVE_BOOTSTRAP set, returns its exit code
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

from deploy.kafka.cluster import Cluster
from deploy.kafka.errors import ClusterError

_ENVIRONMENT = "TWINSIEVE_BOOTSTRAP"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a command; return the exit code, that of COMMAND if there is one."""
    chosen = _parser().parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):  # a background job of a shell ignores SIGINT by default
        signal.signal(number, _interrupt)
    named = os.environ.get(_ENVIRONMENT)
    try:
        if named and chosen.command:
            return _run(chosen.command, named)
        with Cluster(brokers=chosen.brokers) as cluster:
            if chosen.command:
                return _run(chosen.command, cluster.bootstrap)
            print(f"export {_ENVIRONMENT}={cluster.bootstrap}", flush=True)  # noqa: T201
            with contextlib.suppress(KeyboardInterrupt):
                while True:  # not signal.pause(): it would miss a signal that comes just before it, for good
                    time.sleep(0.2)
    except ClusterError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.kafka", description="Apache Kafka for tests and trials.")
    parser.add_argument("--brokers", type=int, default=1, metavar="N", help="nodes to start (default: 1)")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help=f"run with {_ENVIRONMENT} set, then stop")
    return parser


def _run(command: Sequence[str], bootstrap: str) -> int:
    """Run the command and return its exit code. Ctrl-C reaches it directly: it is in our process group."""
    process = subprocess.Popen(command, env={**os.environ, _ENVIRONMENT: bootstrap})  # noqa: S603
    while True:
        try:
            code = process.wait()
            return code if code >= 0 else 128 - code
        except KeyboardInterrupt:
            continue


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
