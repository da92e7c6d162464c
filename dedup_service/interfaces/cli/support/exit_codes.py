"""What the command's exit code says; documented in docs/cli.md and under every `--help`."""

from enum import IntEnum

__all__ = ["EPILOG", "ExitCode"]


class ExitCode(IntEnum):
    """One meaning each. Above 128 stands, as in shells, 128 + the signal that ended the run."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    BAD_RECORDS = 3
    UNAVAILABLE = 4
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    TERMINATED = 143


EPILOG = (
    "Exit codes: 0 done; 1 failed (state refused, disk full); 2 wrong usage or configuration; 3 done, but some "
    "records were bad; 4 the broker could not be reached, the same command may work later; 130 and 143 stopped by "
    "Ctrl-C and SIGTERM after the batch in hand; 141 the reader of the output went away."
)
