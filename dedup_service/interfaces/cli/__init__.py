"""The command line: `twinsieve`, or `python -m dedup_service.interfaces.cli`."""

from dedup_service.interfaces.cli.main import main

__all__ = ["main"]
