"""Exit codes of the command line, as documented in docs/cli.md and at the end of `twinsieve --help`."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The result of a run. As in shells, a code above 128 is 128 + the signal that ended it."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    BAD_RECORDS = 3
    UNAVAILABLE = 4
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    TERMINATED = 143


EPILOG = """\b
Exit codes:
  0    done
  1    failed; for example, the state was refused or the disk is full
  2    wrong usage or configuration
  3    done, but some records were bad or missing
  4    the broker could not be reached; the same command may work later
  130  stopped by Ctrl-C, after the current batch
  141  the reader of the output closed the pipe
  143  stopped by SIGTERM, after the current batch
"""
